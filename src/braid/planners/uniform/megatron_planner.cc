#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/contradiction.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/uniform/lacking_memory.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

/// What the rule leaves to whoever follows it.
struct RuleSettings {
  int ep = 1, micro_batch = 1;
  Recompute recompute = Recompute::full;
  bool sequence_parallel = false;
  Zero zero = Zero::none;
};

class MegatronRule {
 public:
  MegatronRule(const Job& job, const System& system, const SpaceOptions& space)
      : asked_(space),
        space_(with_all_devices(space)),
        limits_(manual_limits(job, system)),
        available_bytes_(usable_bytes(system.groups.front().chip)),
        chain_(chain_job(job, system)),
        tables_(job, system),
        outcome_(begin_outcome(job, system)) {
    check_space(limits_, space_);
  }

  const SpaceOptions& space() const { return space_; }
  const SpaceLimits& limits() const { return limits_; }

  /// The fastest of the plans that the rule leads to with each of these settings.
  Outcome run(std::span<const RuleSettings> all, const std::string& planner);

 private:
  static SpaceOptions with_all_devices(SpaceOptions space) {
    space.all_devices = true;
    return space;
  }
  /// The rule divides layers as the model says.
  static SpaceLimits manual_limits(const Job& job, const System& system) {
    SpaceLimits limits = space_limits(job, system);
    limits.split.automatic.clear();
    return limits;
  }

  /// For given tensor and pipeline degrees; nullopt when the batch or the layers do not allow it.
  std::optional<Configuration> configuration(int tp, int pp, const RuleSettings& settings) const;
  bool wants_the_other(Configuration configuration) const;
  /// Degrees tp and pp in the order in which the rule tries them.
  std::vector<std::pair<int, int>> order(const RuleSettings& settings) const;
  /// The first that fits.
  void follow(const RuleSettings& settings);
  bool fits(const Configuration& configuration);
  /// Why it tries nothing at all.
  Infeasibility nothing_tried() const;

  SpaceOptions asked_;
  SpaceOptions space_;
  SpaceLimits limits_;
  double available_bytes_;
  ChainJob chain_;
  LayerTables tables_;
  AssessmentScratch scratch_{chain_};
  struct Incumbent {
    double time_s = kInfinity;
    Configuration configuration;
    Ends ends;
  };
  Incumbent best_;
  Outcome outcome_;
};

std::optional<Configuration> MegatronRule::configuration(int tp, int pp,
                                                         const RuleSettings& settings) const {
  const std::int64_t replicas = limits_.devices / tp / pp;
  if (limits_.devices % (std::int64_t{tp} * pp) != 0 || pp > limits_.layers ||
      limits_.global_batch % replicas != 0 || replicas % settings.ep != 0) {
    return std::nullopt;
  }
  Configuration configuration;
  configuration.tp = tp;
  configuration.ep = settings.ep;
  configuration.pp = pp;
  configuration.dp = static_cast<int>(replicas);
  configuration.micro_batch = settings.micro_batch;
  if (limits_.global_batch / replicas % configuration.micro_batch != 0) return std::nullopt;
  configuration.num_micro_batches = limits_.global_batch / replicas / configuration.micro_batch;
  if (configuration.num_micro_batches > kMostPlannedPasses / pp) return std::nullopt;
  configuration.sequence_parallel = settings.sequence_parallel && tp > 1;
  configuration.recompute = settings.recompute;
  configuration.zero = settings.zero;
  const Execution how = to_execution(configuration);
  if (!refusal(limits_.split, how).empty() || !is_listed(space_, configuration) ||
      wants_the_other(configuration)) {
    return std::nullopt;
  }
  // ZeRO that nobody asks for is no reason to be refused.
  if (configuration.zero != Zero::none && !asked_.zero &&
      !refusal(space_.can, to_parallelism(configuration)).empty()) {
    return std::nullopt;
  }
  return configuration;
}

/// Whether the trainer takes these degrees only with sequence parallelism where there is none, or
/// only without.
bool MegatronRule::wants_the_other(Configuration configuration) const {
  if (configuration.tp == 1 || refusal(space_.can, to_parallelism(configuration)).empty()) {
    return false;
  }
  configuration.sequence_parallel = !configuration.sequence_parallel;
  return refusal(space_.can, to_parallelism(configuration)).empty();
}

// Tensor parallelism grows first, within the node; then the pipeline.
std::vector<std::pair<int, int>> MegatronRule::order(const RuleSettings& settings) const {
  std::vector<std::pair<int, int>> order;
  int largest_tp = 1;
  for (int tp = 1; tp <= limits_.devices_per_node; ++tp) {
    if (limits_.devices % tp != 0 || !space_.tp.allows(tp)) continue;
    if (!configuration(tp, 1, settings) && !space_.tp.single()) continue;
    order.emplace_back(tp, 1);
    largest_tp = tp;
  }
  if (!space_.tp.allows(largest_tp)) largest_tp = space_.tp.least();
  for (int pp = 2; pp <= limits_.layers; ++pp) order.emplace_back(largest_tp, pp);
  std::erase_if(order, [&](const auto& degrees) { return !space_.pp.allows(degrees.second); });
  return order;
}

/// False where sums alone show that it does not fit.
bool MegatronRule::fits(const Configuration& configuration) {
  const MemoryFloor least = memory_floor(chain_, tables_, {configuration, 1}, scratch_);
  return least.device_bytes <= available_bytes_ * kAboveTolerance;
}

void MegatronRule::follow(const RuleSettings& settings) {
  for (const auto& [tp, pp] : order(settings)) {
    const auto tried = configuration(tp, pp, settings);
    if (!tried) continue;
    ++outcome_.work;
    // Once there is a plan, nobody asks what is missing.
    if (best_.time_s < kInfinity && !fits(*tried)) continue;
    Assessment assessment = assess(chain_, tables_, *tried, kInfinity, scratch_);
    ++outcome_.evaluated;
    if (!assessment.feasible) {
      keep_nearest(chain_, tables_, *tried, assessment.needed_bytes, scratch_,
                   outcome_.infeasibility);
      continue;
    }
    if (assessment.iteration_time_s < best_.time_s) {
      best_ = {assessment.iteration_time_s, *tried, std::move(assessment.ends)};
    }
    return;
  }
}

Infeasibility MegatronRule::nothing_tried() const {
  Infeasibility why{"no split of the rule divides the devices, heads and batch", -1, 0, 0, {}};
  SpaceOptions rule = space_;
  rule.cp = rule.vp = 1;
  rule.tp = Degrees(rule.tp.list(), std::min<int>(rule.tp.limit(), limits_.devices_per_node));
  rule.whole_experts = false;
  rule.schedule = ScheduleKind::one_f_one_b;
  std::optional<Contradiction> broken = contradiction(limits_, rule);
  if (!broken) return why;
  // What is the rule's own nobody has given.
  const std::vector<GivenRestriction> given = given_restrictions(asked_);
  std::erase_if(broken->given, [&](const GivenRestriction& one) {
    return std::none_of(given.begin(), given.end(),
                        [&](const GivenRestriction& other) { return other.text == one.text; });
  });
  if (broken->given.empty()) return why;
  why.reason = "by the rule " + text_of(*broken, limits_, rule);
  why.names_options = true;
  return why;
}

Outcome MegatronRule::run(std::span<const RuleSettings> all, const std::string& planner) {
  for (const RuleSettings& settings : all) follow(settings);
  if (best_.time_s < kInfinity) {
    Candidate candidate;
    candidate.plan = build_plan(chain_, tables_, best_.configuration, best_.ends, planner);
    candidate.metrics = measure(candidate.plan);
    outcome_.objective = candidate.metrics.iteration_time_s;
    outcome_.candidates.push_back(std::move(candidate));
    outcome_.status = Status::feasible;
    outcome_.infeasibility.reset();
  } else if (outcome_.infeasibility) {
    outcome_.infeasibility->reason = "every split of the rule needs more memory than there is";
  } else {
    outcome_.infeasibility = nothing_tried();
  }
  return std::move(outcome_);
}

void check_homogeneous(const System& system) {
  if (is_homogeneous(system)) return;
  throw Error("the megatron planner needs one kind of device on a hierarchical network",
              "plan on one group of " + system.name);
}

/// Recomputation from none to full, every split of experts, every micro-batch size, sequence
/// parallelism or none, the optimizer's state whole or shared by replicas.
std::vector<RuleSettings> all_settings(const SpaceLimits& limits, const SpaceOptions& space) {
  SpaceOptions whole_sequence = space;
  whole_sequence.cp = 1;
  std::set<int> expert_degrees;
  for (const Family& family : families(limits, whole_sequence)) {
    expert_degrees.insert(family.configuration.ep);
  }
  std::vector<RuleSettings> all;
  for (const Recompute recompute : {Recompute::full, Recompute::selective, Recompute::none}) {
    if (recompute != space.recompute.value_or(recompute) || !space.can.allows(recompute)) continue;
    for (const int ep : expert_degrees) {
      for (const int micro_batch : micro_batches_of(limits.global_batch, space)) {
        for (const bool sequence_parallel : space.can.sequence_parallel) {
          if (sequence_parallel != space.sequence_parallel.value_or(sequence_parallel)) continue;
          for (const Zero zero : {Zero::none, Zero::optimizer}) {
            if (space.zero && zero != Zero::none) continue;
            all.push_back(
                {ep, micro_batch, recompute, sequence_parallel, space.zero.value_or(zero)});
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

Outcome plan_megatron(const Job& job, const System& system, const SpaceOptions& space,
                      const Budget&, const Progress&) {
  check_homogeneous(system);
  MegatronRule rule(job, system, space);
  return rule.run(all_settings(rule.limits(), rule.space()), "megatron");
}

Outcome plan_megatron_rule(const Job& job, const System& system, const SpaceOptions& space,
                           const Budget&, const Progress&) {
  check_homogeneous(system);
  RuleSettings bare = {space.ep.least(), space.micro_batch.least(),
                       space.recompute.value_or(Recompute::full),
                       space.sequence_parallel.value_or(false), space.zero.value_or(Zero::none)};
  Outcome outcome = MegatronRule(job, system, space).run({&bare, 1}, "megatron-rule");
  if (!outcome.candidates.empty() || space.sequence_parallel) return outcome;
  // Some models are trained with it alone.
  bare.sequence_parallel = true;
  return MegatronRule(job, system, space).run({&bare, 1}, "megatron-rule");
}

}  // namespace braid
