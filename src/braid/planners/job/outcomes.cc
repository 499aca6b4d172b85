#include "braid/planners/job/outcomes.h"

#include <memory>
#include <optional>
#include <vector>

#include "braid/base/and_list.h"
#include "braid/planners/job/contradiction.h"
#include "braid/planners/job/job_layers.h"

namespace braid {
namespace {

std::vector<std::string> assumptions_of(const System& system) {
  std::vector<std::string> assumptions;
  for (const DeviceGroup& group : system.groups) {
    for (const Provenance& entry : group.chip.provenance) {
      // No time or memory depends on these two.
      if (entry.assumed && entry.key != "price" && entry.key != "power") {
        assumptions.push_back(group.chip.name + ": " + entry.key + ": " + entry.source);
      }
    }
  }
  for (const Provenance& entry : system.provenance) {
    if (entry.assumed) assumptions.push_back(system.name + ": " + entry.key + ": " + entry.source);
  }
  return assumptions;
}

}  // namespace

SpaceLimits space_limits(const Job& job, const System& system) {
  SpaceLimits limits;
  limits.devices = system.device_count;
  limits.devices_per_node = system.groups.front().devices_per_node;
  limits.global_batch = job.global_batch;
  const std::shared_ptr<const LayerOptions> layers = layer_options(job);
  limits.layers = static_cast<int>(layers->layers().layers.size());
  limits.split = layers->limits(system.device_count);
  limits.separate_accumulation = !job.trainer.does.fused_accumulation;
  return limits;
}

Outcome begin_outcome(const Job& job, const System& system) {
  Outcome outcome;
  outcome.physical_bound = lower_bound(job, system);
  outcome.objective_name = kSimulatedObjective;
  outcome.assumptions = assumptions_of(system);
  return outcome;
}

Infeasibility empty_space(const SpaceLimits& limits, const SpaceOptions& options) {
  const std::optional<Contradiction> why = contradiction(limits, options);
  if (why && !(why->given.empty() && why->rules.empty())) {
    return {text_of(*why, limits, options), -1, 0, 0, {}};
  }
  std::string reason =
      std::string(options.all_devices ? "no split uses all " : "no split uses any of the ") +
      std::to_string(limits.devices) +
      " devices: the degrees must divide the model's heads, layers and the global batch of " +
      std::to_string(limits.global_batch);
  if (limits.global_batch > kMostPlannedPasses) {
    reason +=
        ", and an iteration may have " + std::to_string(kMostPlannedPasses) + " passes at most";
  }
  return {reason, -1, 0, 0, {}};
}

Infeasibility uneven_layers() {
  return {"no split deals the layers out evenly, as the trainer does", -1, 0, 0, {}};
}

std::string device_limit(SpaceLimits limits, SpaceOptions options, std::int64_t used) {
  if (used >= limits.devices) return "";
  limits.least_devices = used + 1;
  const std::optional<std::vector<GivenRestriction>> least = least_restrictions(limits, options);
  if (!least) return "";
  std::vector<std::string> given;
  for (const GivenRestriction& one : *least) given.push_back(one.text);
  return given.empty() ? "of this job" : "with " + and_list(given);
}

std::string memory_reason(const SpaceLimits& limits) {
  if (limits.global_batch > kMostPlannedPasses) {
    return "every split of at most " + std::to_string(kMostPlannedPasses) +
           " passes needs more memory than there is";
  }
  return "every split needs more memory than there is";
}

}  // namespace braid
