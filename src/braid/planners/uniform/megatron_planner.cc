#include <algorithm>
#include <optional>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/job_layers.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/uniform/assess.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

/// The rule's configuration for given tensor and pipeline degrees; nullopt when the batch or the
/// layers do not allow it.
std::optional<Configuration> rule_configuration(const SpaceLimits& limits, int tp, int pp,
                                                const SpaceOptions& space) {
  const std::int64_t replicas = limits.devices / tp / pp;
  if (limits.devices % (std::int64_t{tp} * pp) != 0 || pp > limits.layers ||
      limits.global_batch % replicas != 0) {
    return std::nullopt;
  }
  Configuration configuration;
  configuration.tp = tp;
  configuration.pp = pp;
  configuration.dp = static_cast<int>(replicas);
  configuration.micro_batch = space.micro_batch.least();
  if (limits.global_batch / replicas % configuration.micro_batch != 0) return std::nullopt;
  configuration.num_micro_batches = limits.global_batch / replicas / configuration.micro_batch;
  if (configuration.num_micro_batches > kMostPlannedPasses / pp) return std::nullopt;
  configuration.sequence_parallel = space.sequence_parallel.value_or(false) && tp > 1;
  configuration.recompute = space.recompute.value_or(Recompute::full);
  configuration.zero = space.zero.value_or(Zero::none);
  Execution how = to_execution(configuration);
  if (!refusal(limits.split, how).empty() || !is_listed(space, configuration)) return std::nullopt;
  return configuration;
}

}  // namespace

Outcome plan_megatron(const Job& job, const System& system, const SpaceOptions& options,
                      const Budget&, const Progress&) {
  SpaceOptions space = options;
  space.all_devices = true;
  if (!is_homogeneous(system)) {
    throw Error("the megatron planner needs one kind of device on a hierarchical network",
                "plan on one group of " + system.name);
  }
  Outcome outcome;
  outcome.physical_bound = lower_bound(job, system);
  outcome.objective_name = kSimulatedObjective;
  SpaceLimits limits = space_limits(job, system);
  limits.split.automatic.clear();  // The rule divides layers as the model says.
  check_space(limits, space);

  const ChainJob chain = chain_job(job, system);
  LayerTables tables(job, system);
  AssessmentScratch scratch(chain);
  const double available = usable_bytes(system.groups.front().chip);
  // Tensor parallelism grows first, within the node; then the pipeline; the first that fits is
  // taken.
  std::vector<std::pair<int, int>> order;
  int largest_tp = 1;
  for (int tp = 1; tp <= limits.devices_per_node; ++tp) {
    if (limits.devices % tp != 0 || !space.tp.allows(tp)) continue;
    if (!rule_configuration(limits, tp, 1, space) && !space.tp.single()) continue;
    order.emplace_back(tp, 1);
    largest_tp = tp;
  }
  if (!space.tp.allows(largest_tp)) largest_tp = space.tp.least();
  for (int pp = 2; pp <= limits.layers; ++pp) order.emplace_back(largest_tp, pp);

  for (const auto& [tp, pp] : order) {
    if (!space.pp.allows(pp)) continue;
    const auto configuration = rule_configuration(limits, tp, pp, space);
    if (!configuration) continue;
    ++outcome.work;
    const Assessment assessment = assess(chain, tables, *configuration, kInfinity, scratch);
    ++outcome.evaluated;
    if (!assessment.feasible) {
      if (!outcome.infeasibility || assessment.needed_bytes < outcome.infeasibility->needed_bytes) {
        outcome.infeasibility =
            Infeasibility{"every split of the rule needs more memory than a device has",
                          assessment.tightest_stage, assessment.needed_bytes, available,
                          to_parallelism(*configuration)};
      }
      continue;
    }
    Candidate candidate;
    candidate.plan = build_plan(chain, tables, *configuration, assessment.ends, "megatron");
    candidate.metrics = measure(candidate.plan);
    outcome.objective = candidate.metrics.iteration_time_s;
    outcome.candidates.push_back(std::move(candidate));
    outcome.status = Status::feasible;
    outcome.infeasibility.reset();
    return outcome;
  }
  if (!outcome.infeasibility) {
    outcome.infeasibility =
        Infeasibility{"no split of the rule divides the devices, heads and batch", -1, 0, 0, {}};
  }
  return outcome;
}

}  // namespace braid
