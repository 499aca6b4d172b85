#include "braid/planners/job/contradiction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "braid/base/and_list.h"
#include "braid/plan/names.h"
#include "braid/planners/job/fixed_form.h"
#include "braid/planners/job/space_rules.h"

namespace braid {
namespace {

/// 1, the divisors of `number` and `more`, ascending.
std::vector<int> candidates(std::int64_t number, const std::vector<int>& more) {
  std::vector<int> found = more;
  found.push_back(1);
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    for (const std::int64_t divisor : {d, number / d}) {
      if (divisor <= Degrees::kNoLimit) found.push_back(static_cast<int>(divisor));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Looks through the space in nested loops, a degree in each, innermost what the pipeline is.
class SpaceWalk {
 public:
  SpaceWalk(const SpaceLimits& limits, const SpaceOptions& options, SpaceRules rules,
            std::int64_t most_looked_at)
      : limits_(limits), options_(options), rules_(rules), left_(most_looked_at) {
    if (!keeps(SpaceRule::trainer)) {
      options_.can = {};
      options_.can.auto_sharding = options.can.auto_sharding;
    }
    const SplitLimits& split = limits.split;
    std::vector<int> tps = options.tp.list();
    tps.insert(tps.end(), split.automatic.begin(), split.automatic.end());
    std::vector<int> cps = options.cp.list();
    std::vector<int> pps = options.pp.list();
    // What a rule that does not count would refuse.
    const std::vector<int> of_devices = candidates(limits.devices, {});
    for (const auto& [rule, more] :
         {std::pair{SpaceRule::heads, &tps}, std::pair{SpaceRule::sequence, &cps},
          std::pair{SpaceRule::layers, &pps}}) {
      if (!keeps(rule)) more->insert(more->end(), of_devices.begin(), of_devices.end());
    }
    tps_ = options.tp.among(candidates(std::max<std::int64_t>(1, split.heads), tps));
    cps_ = options.cp.among(candidates(std::max<std::int64_t>(1, split.seq_len / 2), cps));
    eps_ =
        options.ep.among(candidates(std::max<std::int64_t>(1, split.experts), options.ep.list()));
    std::vector<int> dps = candidates(limits.devices, options.dp.list());
    dps.insert(dps.end(), eps_.begin(), eps_.end());
    dps_ = options.dp.among(candidates(limits.global_batch, dps));
    for (int pp = 1; pp <= limits.layers; ++pp) pps.push_back(pp);
    pps_ = options.pp.among(candidates(1, pps));
  }

  std::optional<bool> found() {
    for (const int tp : tps_) {
      if (found_with(tp)) return true;
    }
    return left_ > 0 ? std::optional<bool>(false) : std::nullopt;
  }

 private:
  bool keeps(SpaceRule rule) const { return (rules_ >> static_cast<unsigned>(rule) & 1) != 0; }
  /// Whether the model can be split so, as far as a rule that counts says so.
  bool splits(SpaceRule rule, int tp, int cp, int ep) const {
    if (!keeps(limits_.split.listed != nullptr ? SpaceRule::profile : rule)) return true;
    Execution how;
    how.tp = tp;
    how.cp = cp;
    how.ep = ep;
    return refusal(limits_.split, how).empty();
  }

  bool found_with(int tp) {
    Configuration c;
    c.tp = tp;
    c.recompute = options_.recompute.value_or(Recompute::none);
    if (!splits(SpaceRule::heads, tp, 1, 1) && limits_.split.listed == nullptr) return false;
    for (const int cp : cps_) {
      c.cp = cp;
      c.ep = 1;
      c.whole_experts = false;
      if (limits_.split.listed == nullptr && !splits(SpaceRule::sequence, 1, cp, 1)) continue;
      if (!can_divide(options_.can, to_execution(c))) continue;
      for (const int ep : eps_) {
        c.ep = ep;
        for (const bool whole : {false, true}) {
          c.whole_experts = whole;
          if (allows_experts(options_, to_execution(c)) && found_in_family(c)) return true;
        }
      }
    }
    return false;
  }

  bool found_in_family(Configuration c) {
    const SplitLimits& split = limits_.split;
    if (split.listed != nullptr ? !splits(SpaceRule::profile, c.tp, c.cp, c.ep)
                                : !splits(SpaceRule::experts, 1, 1, c.ep)) {
      return false;
    }
    if (!can_divide(options_.can, to_execution(c))) return false;
    if (keeps(SpaceRule::expert_ranks) && !experts_nest(to_execution(c))) return false;
    for (const int pp : pps_) {
      c.pp = pp;
      const std::int64_t shards = std::int64_t{c.tp} * c.cp * pp;
      if (keeps(SpaceRule::devices) && shards > limits_.devices) return false;
      if (keeps(SpaceRule::layers) && pp > limits_.layers) return false;
      if (pp > options_.can.most_stages) return false;
      for (const int dp : dps_) {
        if (--left_ <= 0) return false;
        if (keeps(SpaceRule::devices) && shards * dp > limits_.devices) break;
        c.dp = dp;
        if (found_with_degrees(c)) return true;
      }
    }
    return false;
  }

  bool found_with_degrees(const Configuration& c) {
    const std::int64_t replicas = std::int64_t{c.dp} * c.cp;
    if (keeps(SpaceRule::devices) && !takes_devices(replicas * c.tp * c.pp, limits_, options_)) {
      return false;
    }
    if (keeps(SpaceRule::batch) && limits_.global_batch % c.dp != 0) return false;
    if (keeps(SpaceRule::expert_ranks) && expert_axis(c) % c.ep != 0) return false;
    if (!options_.can.fills_nodes(std::int64_t{c.tp} * c.cp * c.pp, c.dp, c.ep)) return false;
    if (is_excluded(options_.can, c, kDegreeTraits)) return false;
    const std::vector<Zero> states = states_of(c);
    // What the trainer excludes may be about both and the pipeline together.
    const bool at_once = options_.can.never.empty();
    for (const TensorSharding& form : tensor_forms_of(c)) {
      for (const Zero zero : states) {
        Configuration formed = with_form(c, form);
        formed.zero = zero;
        if (has_pipeline(formed)) return true;
        if (at_once) return false;
      }
    }
    return false;
  }

  /// The stages of ZeRO that the trainer has for it.
  std::vector<Zero> states_of(const Configuration& c) const {
    std::vector<Zero> states = {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters};
    if (options_.zero) {
      states = {*options_.zero};
    } else if (c.dp * std::int64_t{c.cp} == 1) {
      states = {Zero::none};
    }
    std::erase_if(states, [&](Zero zero) { return !options_.can.allows(zero, c.pp); });
    return states;
  }

  std::vector<TensorSharding> tensor_forms_of(const Configuration& c) const {
    SpaceOptions options;
    options.sequence_parallel = options_.sequence_parallel;
    options.can = options_.can;
    SpaceLimits limits = limits_;
    if (limits.split.listed == nullptr) {
      // What a rule that does not count would refuse.
      if (!keeps(SpaceRule::sequence)) limits.split.seq_len = 2 * std::int64_t{c.cp} * c.tp;
      if (!keeps(SpaceRule::heads)) limits.split.heads = limits.split.kv_heads = c.tp;
      if (!keeps(SpaceRule::experts) && c.ep > 1) limits.split.experts = c.ep;
    } else if (!keeps(SpaceRule::profile)) {
      return {{}};
    }
    return tensor_shardings(c, limits, options);
  }

  bool has_pipeline(Configuration c) {
    const std::int64_t samples = std::max<std::int64_t>(1, limits_.global_batch / c.dp);
    std::vector<int> sizes = candidates(samples, options_.micro_batch.list());
    if (keeps(SpaceRule::profile)) {
      SpaceOptions listed;
      listed.listed = options_.listed;
      listed.micro_batch = options_.micro_batch;
      if (listed.listed != nullptr) sizes = micro_batches_of(samples, listed);
    }
    const std::vector<int> allowed = options_.micro_batch.among(std::move(sizes));
    return std::any_of(allowed.begin(), allowed.end(), [&](int size) {
      if (keeps(SpaceRule::batch) && samples % size != 0) return false;
      c.micro_batch = size;
      c.num_micro_batches = std::max<std::int64_t>(1, samples / size);
      return is_listed_so(c) && has_schedule(c);
    });
  }

  /// In any of its forms.
  bool is_listed_so(Configuration c) const {
    if (!keeps(SpaceRule::profile) || options_.listed == nullptr) return true;
    const std::vector<TensorSharding> forms = tensor_shardings(c, limits_, options_);
    return std::any_of(forms.begin(), forms.end(), [&](const TensorSharding& form) {
      return is_listed(options_, with_form(c, form));
    });
  }

  /// Whether the trainer has it in an order of the axes.
  bool can_be_told(Configuration c, ScheduleKind kind) const {
    if (!allows_schedule(options_, kind, c.pp)) return false;
    if (options_.can.never.empty()) return true;
    c.schedule = kind;
    const std::array orders = {
        std::pair{AxisOrder::pipeline_outermost, options_.can.pipeline_outermost},
        std::pair{AxisOrder::data_outermost, options_.can.data_outermost}};
    return std::any_of(orders.begin(), orders.end(), [&](const auto& order) {
      c.order = order.first;
      const bool one_order = c.pp == 1 || c.dp == 1;
      return (order.second || one_order) && !is_excluded(options_.can, c);
    });
  }

  bool has_schedule(const Configuration& c) const {
    const std::array all = {ScheduleKind::one_f_one_b, ScheduleKind::gpipe,
                            ScheduleKind::interleaved};
    return std::any_of(all.begin(), all.end(), [&](ScheduleKind kind) {
      if (!can_be_told(c, kind)) return false;
      const bool interleaved = kind == ScheduleKind::interleaved;
      if (!keeps(SpaceRule::interleaving)) {
        return has_room(c, options_.vp.least());
      }
      if (!interleaved) return options_.vp.allows(1) && has_room(c, 1);
      const std::optional<int> vp = options_.vp.at_least(2);
      return can_interleave(c.pp, c.num_micro_batches) && vp && has_room(c, *vp);
    });
  }

  bool has_room(const Configuration& c, int vp) const {
    const std::int64_t chunks = std::int64_t{c.pp} * vp;
    if (keeps(SpaceRule::layers) && chunks > limits_.layers) return false;
    return !keeps(SpaceRule::passes) || has_few_passes(chunks, c.num_micro_batches);
  }

  const SpaceLimits& limits_;
  SpaceOptions options_;  ///< With all that a trainer can be told, where that rule does not count.
  SpaceRules rules_;
  std::int64_t left_;
  std::vector<int> tps_, cps_, eps_, pps_, dps_;
};

/// Why a trainer cannot be told what is fixed; where it depends on sequence parallelism, with and
/// without.
std::string trainer_text(SpaceOptions options, bool has_experts) {
  const FormTraits decided = has_experts ? 0 : bit_of(FormTrait::whole_experts);
  const auto why = [&] { return refusal_of_fixed(options.can, options, decided); };
  std::vector<std::string> reasons = {why()};
  if (reasons.front().empty() && !options.sequence_parallel) {
    reasons.clear();
    for (const bool on : {false, true}) {
      options.sequence_parallel = on;
      reasons.push_back(why());
    }
  }
  const bool known = std::none_of(reasons.begin(), reasons.end(),
                                  [](const std::string& reason) { return reason.empty(); });
  return "the trainer " + (known ? and_list(reasons) : "cannot be told so");
}

std::string rule_text(SpaceRule rule, const SpaceLimits& limits, const SpaceOptions& options) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const SplitLimits& split = limits.split;
  switch (rule) {
    case SpaceRule::heads:
      return split.heads == 0 ? "the model cannot be split by tensor parallelism"
                              : "tp divides the " + number(split.heads) +
                                    " that all heads and widths have in common";
    case SpaceRule::sequence:
      if (split.recurrent) return "cp cannot split the steps of a recurrent layer";
      return split.seq_len == 0
                 ? "the model has no sequence to split"
                 : "2·cp, and tp with sequence parallelism, divide the sequence of " +
                       number(split.seq_len) + " tokens";
    case SpaceRule::experts:
      return split.experts == 0 ? "the model has no experts"
                                : "ep divides the " + number(split.experts) + " experts";
    case SpaceRule::expert_ranks:
      if (options.whole_experts == false) {
        return "experts are split over data and context parallel ranks, not over tp or pp (ep "
               "divides dp·cp)";
      }
      return "experts are split over data and context parallel ranks, and over tp where it leaves "
             "them whole, not over pp (ep divides dp·cp, or tp·cp·dp)";
    case SpaceRule::devices:
      return std::string("tp·cp·pp·dp is ") + (options.all_devices ? "all " : "at most the ") +
             number(limits.devices) + (limits.devices == 1 ? " device" : " devices");
    case SpaceRule::batch:
      return "dp·micro-batch divides the global batch of " + number(limits.global_batch);
    case SpaceRule::layers:
      return "pp·vp is at most the " + number(limits.layers) + " layers";
    case SpaceRule::interleaving:
      return "only interleaving has several chunks a stage, on several stages, with micro-batches "
             "in multiples of pp";
    case SpaceRule::passes:
      return "an iteration has at most " + number(kMostPlannedPasses) + " forward passes";
    case SpaceRule::trainer:
      return trainer_text(options, split.experts > 0);
    case SpaceRule::profile:
      break;
  }
  return "the profile has no such options for every layer";
}

}  // namespace

std::vector<GivenRestriction> given_restrictions(const SpaceOptions& options) {
  std::vector<GivenRestriction> given;
  const auto add = [&](const std::string& option, const std::string& value,
                       std::function<void(SpaceOptions&)> take_back) {
    given.push_back({option, value.empty() ? option : option + " " + value, std::move(take_back)});
  };
  if (options.all_devices) {
    add("--all-devices", "", [](SpaceOptions& space) { space.all_devices = false; });
  }
  if (!options.allow_offload) {
    add("--no-offload", "", [](SpaceOptions& space) { space.allow_offload = true; });
  }
  if (options.zero) {
    add("--zero", std::string(name_of(*options.zero)),
        [](SpaceOptions& space) { space.zero.reset(); });
  }
  if (options.recompute) {
    add("--recompute", std::string(name_of(*options.recompute)),
        [](SpaceOptions& space) { space.recompute.reset(); });
  }
  if (options.sequence_parallel) {
    add("--sequence-parallel", *options.sequence_parallel ? "on" : "off",
        [](SpaceOptions& space) { space.sequence_parallel.reset(); });
  }
  const auto add_degree = [&](const std::string& name, Degrees SpaceOptions::*degree) {
    const Degrees& value = options.*degree;
    if (value.limit() != Degrees::kNoLimit) {
      add("--max-" + name, std::to_string(value.limit()),
          [degree](SpaceOptions& space) { space.*degree = Degrees((space.*degree).list()); });
    }
    if (!value.list().empty()) {
      std::string list;
      for (const int one : value.list()) list += (list.empty() ? "" : ",") + std::to_string(one);
      add("--" + name, list,
          [degree](SpaceOptions& space) { space.*degree = Degrees({}, (space.*degree).limit()); });
    }
  };
  add_degree("micro-batch", &SpaceOptions::micro_batch);
  add_degree("dp", &SpaceOptions::dp);
  add_degree("vp", &SpaceOptions::vp);
  if (options.schedule) {
    add("--schedule", std::string(name_of(*options.schedule)),
        [](SpaceOptions& space) { space.schedule.reset(); });
  }
  if (options.whole_experts) {
    add("--whole-experts", *options.whole_experts ? "on" : "off",
        [](SpaceOptions& space) { space.whole_experts.reset(); });
  }
  add_degree("pp", &SpaceOptions::pp);
  add_degree("cp", &SpaceOptions::cp);
  add_degree("tp", &SpaceOptions::tp);
  add_degree("ep", &SpaceOptions::ep);
  return given;
}

std::optional<bool> has_configuration(const SpaceLimits& limits, const SpaceOptions& options,
                                      SpaceRules rules, std::int64_t most_looked_at) {
  return SpaceWalk(limits, options, rules, most_looked_at).found();
}

std::optional<std::vector<GivenRestriction>> least_restrictions(const SpaceLimits& limits,
                                                                SpaceOptions& left) {
  const auto is_empty = [&](const SpaceOptions& space) {
    return has_configuration(limits, space, kAllSpaceRules) == false;
  };
  if (!is_empty(left)) return std::nullopt;
  std::vector<GivenRestriction> least;
  for (GivenRestriction& restriction : given_restrictions(left)) {
    SpaceOptions without_it = left;
    restriction.take_back(without_it);
    if (is_empty(without_it)) {
      left = std::move(without_it);
    } else {
      least.push_back(std::move(restriction));
    }
  }
  return least;
}

std::optional<Contradiction> contradiction(const SpaceLimits& limits, const SpaceOptions& options) {
  SpaceOptions left = options;
  std::optional<std::vector<GivenRestriction>> given = least_restrictions(limits, left);
  if (!given) return std::nullopt;
  Contradiction found{*std::move(given), {}};
  // The rules first named say most; they are dropped last.
  SpaceRules rules = kAllSpaceRules;
  for (int r = kSpaceRules - 1; r >= 0; --r) {
    const auto rule = static_cast<SpaceRule>(r);
    if (has_configuration(limits, left, without(rules, rule)) == false) {
      rules = without(rules, rule);
    } else {
      found.rules.insert(found.rules.begin(), rule);
    }
  }
  return found;
}

std::string text_of(const Contradiction& contradiction, const SpaceLimits& limits,
                    const SpaceOptions& options) {
  std::vector<std::string> given, rules;
  for (const GivenRestriction& one : contradiction.given) given.push_back(one.text);
  for (const SpaceRule rule : contradiction.rules) {
    rules.push_back(rule_text(rule, limits, options));
  }
  std::string text = given.empty()       ? "no configuration of this job exists"
                     : given.size() == 1 ? "no configuration has " + given.front()
                                         : and_list(given) + " do not go together";
  if (!rules.empty()) text += ": " + and_list(rules);
  return text;
}

}  // namespace braid
