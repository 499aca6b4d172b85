#include "braid/profile/listed_layers.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"

namespace braid {
namespace {

/// More than any plan takes, and yet sums of it are numbers.
constexpr double kNever_s = 1e30;

/// "sharded" of "tp4:sharded full recompute".
std::string sharding_of(const Option& option) {
  const std::size_t begin = option.name.find(':');
  if (begin == std::string::npos) return option.name;
  return option.name.substr(begin + 1, option.name.find(' ', begin) - begin - 1);
}

class ListedCosts : public LayerCosts {
 public:
  ListedCosts(const std::vector<std::vector<Option>>& kinds, const Precision& precision)
      : kinds_(kinds) {
    for (std::vector<Option>& options : kinds_) {
      LayerCost& never = never_.emplace_back();
      never.forward.compute_s = kNever_s;
      for (double LayerCost::*field : {&LayerCost::dense_parameters, &LayerCost::expert_parameters,
                                       &LayerCost::stash_bytes, &LayerCost::working_bytes}) {
        never.*field = kInfinity;
      }
      for (Option& option : options) {
        option.cost = with_stated_memory(option.cost, precision);
        keep_least(option.cost, never);
      }
    }
  }

  std::vector<KindSharding> shardings(std::size_t kind, const Execution& how,
                                      const LayerGroups& /*groups*/) override {
    std::vector<KindSharding> known;
    for (const Option& option : kinds_[kind]) {
      if (option.how != how) continue;
      KindSharding sharding;
      if (!option.sharded.empty()) sharding = AutoSharding{sharding_of(option), {}};
      if (std::find(known.begin(), known.end(), sharding) == known.end()) {
        known.insert(sharding ? known.end() : known.begin(), std::move(sharding));
      }
    }
    if (known.empty()) known.emplace_back();
    return known;
  }

  LayerCost cost(std::size_t kind, const KindSharding& sharding, const Execution& how,
                 const LayerGroups& /*groups*/) override {
    const Option* found = find(kind, sharding, how);
    return found != nullptr ? found->cost : never_[kind];
  }

  Option option(std::size_t kind, const KindSharding& sharding,
                const Execution& how) const override {
    const Option* found = find(kind, sharding, how);
    if (found != nullptr) return *found;
    Option option;
    option.how = how;
    option.name = name_of(how);
    return option;
  }

 private:
  static void keep_least(const LayerCost& cost, LayerCost& least) {
    for (double LayerCost::*field : {&LayerCost::dense_parameters, &LayerCost::expert_parameters,
                                     &LayerCost::stash_bytes, &LayerCost::working_bytes}) {
      least.*field = std::min(least.*field, cost.*field);
    }
  }

  const Option* find(std::size_t kind, const KindSharding& sharding, const Execution& how) const {
    const Option* found = nullptr;
    for (const Option& option : kinds_[kind]) {
      if (option.how != how || option.sharded.empty() == sharding.has_value()) continue;
      if (sharding && sharding_of(option) != sharding->name) continue;
      if (found == nullptr || option.cost.time_s() < found->cost.time_s()) {
        found = &option;
      }
    }
    return found;
  }

  std::vector<std::vector<Option>> kinds_;
  std::vector<LayerCost> never_;  ///< By kind: of what is not in the list.
};

Profile without_options(Profile profile) {
  for (std::vector<Option>& options : profile.kinds) options.clear();
  return profile;
}

/// Least common multiple of degrees. Throws Error where it is too large to count with.
std::int64_t multiple_of(std::int64_t a, std::int64_t b) {
  std::int64_t multiple = 0;
  if (__builtin_mul_overflow(a / std::gcd(a, b), b, &multiple) || multiple > 1LL << 60) {
    throw Error("the profile's degrees have no common multiple that is not huge",
                "leave out options of odd degrees");
  }
  return multiple;
}

}  // namespace

LayerCost with_stated_memory(LayerCost cost, const Precision& precision) {
  if (cost.fixed_bytes < 0 && cost.gradient_bytes < 0) return cost;
  const double parameters = cost.dense_parameters + cost.expert_parameters;
  const double gradient_bytes = bytes_per_element(precision.gradient);
  if (cost.gradient_bytes < 0) cost.gradient_bytes = parameters * gradient_bytes;
  if (cost.fixed_bytes < 0) {
    cost.fixed_bytes = parameters * (bytes_per_element(precision.weight) + gradient_bytes +
                                     precision.optimizer_bytes_per_parameter);
  }
  cost.dense_parameters = cost.expert_parameters = 0;
  return cost;
}

ListedLayers::ListedLayers(Profile profile)
    : profile_(std::move(profile)), layers_(without_options(profile_)), executions_(profile_) {
  for (const std::vector<Option>& options : profile_.kinds) {
    for (const Option& option : options) finds_ = finds_ || !option.sharded.empty();
  }
}

double ListedLayers::parameters() const {
  double sum = 0;
  for (const ProfileLayer& layer : profile_.layers) {
    const std::vector<Option>& options = profile_.kinds[at(layer.kind)];
    const auto whole = std::find_if(options.begin(), options.end(), [](const Option& option) {
      return option.how.tp == 1 && option.how.ep == 1;
    });
    if (whole == options.end()) return 0;
    sum += whole->cost.dense_parameters + whole->cost.expert_parameters;
  }
  for (const SharedParameter& shared : profile_.shared) {
    sum -= shared.elements * static_cast<double>(shared.layers.size() - 1);
  }
  return std::max(0.0, sum);
}

double ListedLayers::least_work_s() const {
  std::vector<double> least_s(profile_.kinds.size(), kInfinity);
  for (std::size_t kind = 0; kind < least_s.size(); ++kind) {
    for (const Option& option : profile_.kinds[kind]) {
      const Execution& how = option.how;
      const double device_s = option.cost.time_s() * how.tp * how.cp / how.micro_batch;
      least_s[kind] = std::min(least_s[kind], device_s);
    }
  }
  double sum_s = 0;
  for (const ProfileLayer& layer : profile_.layers) sum_s += least_s[at(layer.kind)];
  return sum_s;
}

SplitLimits ListedLayers::limits(std::int64_t most_tp) const {
  SplitLimits limits;
  limits.listed = &executions_;
  limits.heads = limits.experts = 1;
  std::int64_t cp = 1;
  for (const Execution& how : executions_.all()) {
    if (executions_.has_manual(how.tp)) limits.heads = multiple_of(limits.heads, how.tp);
    limits.experts = multiple_of(limits.experts, how.ep);
    cp = multiple_of(cp, how.cp);
  }
  limits.seq_len = 2 * cp;
  for (const int tp : executions_.auto_tp()) {
    if (finds_ && tp <= most_tp) limits.automatic.push_back(tp);
  }
  return limits;
}

std::unique_ptr<LayerCosts> ListedLayers::on(const System& /*system*/,
                                             const Precision& precision) const {
  return std::make_unique<ListedCosts>(profile_.kinds, precision);
}

}  // namespace braid
