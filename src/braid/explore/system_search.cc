#include "braid/explore/system_search.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <utility>
#include <variant>

#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/base/rounding.h"
#include "braid/explore/architecture_limits.h"
#include "braid/explore/family_bound.h"
#include "braid/explore/kept_systems.h"
#include "braid/explore/search_value.h"
#include "braid/explore/system_family.h"

namespace braid {
namespace {

/// Families bounded, and systems planned, side by side: a share of those before, so that where
/// there are few each one's outcome is known to most others. Part of what the search does, so not
/// the number of threads.
constexpr std::size_t kLeastBatch = 2, kMostBatch = 32, kBatchShare = 16;

/// A family that is to be looked at: the first of equal merit that came.
struct OpenFamily {
  SystemFamily family;
  std::uint64_t order = 0;

  bool operator<(const OpenFamily& other) const {
    const auto own = rank_of(family.merit), others = rank_of(other.family.merit);
    return own < others || (own == others && order > other.order);
  }
};

/// What looking at a family comes to: itself with a bound, or a system planned.
struct Step {
  std::optional<SystemFamily> bounded;
  std::vector<PointResult> planned;  ///< [workload]
  std::string refusal;
};

/// The search by one planner.
class Search {
 public:
  /// Puts results of points into `all`.
  Search(const Space& space, std::size_t planner, std::shared_ptr<NestMemo> nests,
         SystemSearchResult& all)
      : space_(space),
        systems_(std::get<SystemSpace>(space.points)),
        search_(*systems_.search),
        families_(space),
        limits_(space, families_.architectures()),
        nests_(std::move(nests)),
        kept_(space),
        all_(all) {
    found_.planner = planner;
  }

  /// `plan(number)`: the result of a point.
  template <typename Plan>
  PlannerSearch run(const Plan& plan, const SystemSearchProgress& progress) {
    for (SystemFamily& family : families_.first()) {
      found_.systems += family.systems();
      push(std::move(family));
    }
    std::int64_t work = 0;
    while (!open_.empty() && work < search_.most_plans) {
      const std::vector<SystemFamily> batch = next_batch();
      if (batch.empty()) break;
      std::vector<Step> steps(batch.size());
      parallel_for(batch.size(), [&](std::size_t i) { steps[i] = step(batch[i], plan); });
      work += static_cast<std::int64_t>(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i) take(batch[i], std::move(steps[i]));
      if (progress) progress(found_.planned, found_.bounded);
    }
    close();
    return std::move(found_);
  }

 private:
  /// The most promising families that are not settled, to be bounded or planned: bounded ones are
  /// split on the way.
  std::vector<SystemFamily> next_batch() {
    const std::size_t most =
        std::clamp((found_.bounded + found_.planned) / kBatchShare, kLeastBatch, kMostBatch);
    std::vector<SystemFamily> batch;
    while (!open_.empty() && batch.size() < most) {
      const bool is_settled = kept_.settles(open_.top().family.merit);
      // The others have lower bounds. Of a front they may cost less.
      if (is_settled && search_.what != SearchFor::front) break;
      SystemFamily family = open_.top().family;
      open_.pop();
      if (is_settled) continue;
      std::vector<SystemFamily> parts;
      if (!is_to_be_bounded(family)) parts = families_.parts(family);
      if (parts.empty()) batch.push_back(std::move(family));
      for (SystemFamily& part : parts) push(std::move(part));
    }
    return batch;
  }

  bool is_to_be_bounded(const SystemFamily& family) const {
    return systems_.architectures && !family.is_bounded;
  }

  /// With its merit.
  void push(SystemFamily family) {
    families_.set_merit(family);
    open_.push({std::move(family), order_++});
  }

  template <typename Plan>
  Step step(const SystemFamily& family, const Plan& plan) const {
    Step made;
    if (is_to_be_bounded(family)) {
      BoundedFamily bounded = bounded_family(systems_, family, found_.planner, nests_);
      made.bounded = std::move(bounded.family);
      made.refusal = std::move(bounded.refusal);
      return made;
    }
    for (std::size_t w = 0; w < systems_.workloads.size(); ++w) {
      made.planned.push_back(plan(point_number(space_, family.place, w, found_.planner)));
    }
    return made;
  }

  void take(const SystemFamily& from, Step made) {
    if (found_.why_none.empty()) found_.why_none = made.refusal;
    if (made.bounded) {
      ++found_.bounded;
      limits_.note(*made.bounded, families_.value_of(*made.bounded), false);
      push(std::move(*made.bounded));
    }
    if (!made.planned.empty()) take_planned(from, made.planned);
  }

  /// What the plan of a system leaves open: with a gap, another one may be better.
  void note_open(SystemFamily system, std::span<const PointResult> planned) {
    bool proven = true;
    for (std::size_t w = 0; w < planned.size(); ++w) {
      const PointResult& result = planned[w];
      proven = proven && result.status == Status::optimal;
      double& least_s = system.least_s[w];
      if (result.status == Status::infeasible) least_s = kInfinity;
      if (is_found(result)) least_s = std::max(least_s, kBelowRounding * searched_bound_s(result));
    }
    system.merit.value = families_.value_of(system);
    if (!proven && system.merit.value > 0) unproven_.push_back(std::move(system));
  }

  void take_planned(const SystemFamily& from, std::span<PointResult> planned) {
    ++found_.planned;
    note_open(from, planned);
    FoundSystem system;
    system.place = from.place;
    std::vector<double> amounts;
    bool complete = true;
    for (std::size_t w = 0; w < planned.size(); ++w) {
      PointResult& result = planned[w];
      complete = complete && is_found(result);
      if (complete) {
        amounts.push_back(searched_amount(systems_, result));
        system.throughput.push_back(units_in(systems_.workloads[w]) / searched_time_s(result));
        system.usd = result.usd;
        system.watts = result.watts;
      } else if (found_.why_none.empty()) {
        found_.why_none = result.reason;
      }
      const std::size_t number = point_number(space_, from.place, w, found_.planner);
      all_.results[number] = std::move(result);
      all_.planned.push_back(number);
    }
    if (!complete) return limits_.note(from, 0, true);
    system.value = search_value(systems_, amounts, {system.usd, system.watts});
    limits_.note(from, system.value, true);
    kept_.add(std::move(system));
  }

  void close() {
    ArchitectureLimits::OfArchitectures limits = limits_.of_architectures();
    found_.at_most = std::move(limits.at_most);
    found_.is_exact = std::move(limits.is_exact);
    while (!open_.empty() && kept_.settles(open_.top().family.merit)) open_.pop();
    if (!open_.empty()) found_.open_value = open_.top().family.merit.value;
    std::erase_if(unproven_,
                  [&](const SystemFamily& system) { return kept_.settles(system.merit); });
    found_.best = kept_.take();
    for (const SystemFamily& system : unproven_) {
      const bool is_listed =
          std::any_of(found_.best.begin(), found_.best.end(),
                      [&](const FoundSystem& listed) { return listed.place == system.place; });
      if (!is_listed) found_.open_value = std::max(found_.open_value, system.merit.value);
    }
  }

  const Space& space_;
  const SystemSpace& systems_;
  const SystemSearch& search_;
  const SystemFamilies families_;
  ArchitectureLimits limits_;
  std::shared_ptr<NestMemo> nests_;
  KeptSystems kept_;
  SystemSearchResult& all_;
  std::priority_queue<OpenFamily> open_;
  std::vector<SystemFamily> unproven_;  ///< Systems whose plans have a gap.
  std::uint64_t order_ = 0;
  PlannerSearch found_;
};

}  // namespace

SystemSearchResult search_systems(const Space& space, PointStore* store,
                                  const SystemSearchProgress& progress) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  assert(systems.search);
  const auto nests = std::make_shared<NestMemo>();
  SystemSearchResult all;
  all.results.resize(point_count(space));
  std::vector<std::optional<PointResult>> known;
  if (store != nullptr) known = store->load();
  std::mutex mutex;
  const auto plan = [&](std::size_t number) {
    const bool stored = store != nullptr && known[number].has_value();
    PointResult result =
        stored ? *known[number] : plan_point(systems, point_of(space, number), nests).result;
    const std::lock_guard<std::mutex> lock(mutex);
    if (stored) ++all.resumed;
    if (store != nullptr && !stored) {
      store->add(number, result);
      store->commit();
    }
    return result;
  };
  for (std::size_t planner = 0; planner < space.axes[kMethodAxis].values.size(); ++planner) {
    all.searches.push_back(Search(space, planner, nests, all).run(plan, progress));
  }
  std::sort(all.planned.begin(), all.planned.end());
  return all;
}

PlannerSearch search_systems_by(const Space& space, std::size_t planner) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  const auto nests = std::make_shared<NestMemo>();
  SystemSearchResult all;
  all.results.resize(point_count(space));
  const auto plan = [&](std::size_t number) {
    return plan_point(systems, point_of(space, number), nests).result;
  };
  return Search(space, planner, nests, all).run(plan, {});
}

}  // namespace braid
