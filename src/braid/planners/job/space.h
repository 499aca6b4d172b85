#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/ease.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/job.h"
#include "braid/profile/split_limits.h"

namespace braid {

/// Number of devices and layers, and what the model allows: all that the space depends on.
struct SpaceLimits {
  std::int64_t devices = 1;
  std::int64_t devices_per_node = 1;
  std::int64_t least_devices = 1;         ///< Of takes_devices(): plans on fewer do not count.
  int most_dimensions = kPlanDimensions;  ///< Plans with more of tp, cp, ep, pp above 1 do not.
  std::int64_t global_batch = 1;
  int layers = 1;
  SplitLimits split;
  /// Gradients of micro-batches are added up by kernels of their own (not fused_accumulation), of
  /// which ZeRO-2 and 3 need none.
  bool separate_accumulation = false;
};

/// Forward passes of an iteration beyond which a plan is not considered: what simulate() can show.
/// Only batches of millions of samples that no larger micro-batch divides get there.
inline constexpr std::int64_t kMostPlannedPasses = std::int64_t{1} << 20;

/// Checks the user's restrictions against each other and the job. Throws Error naming the option
/// and how to fix it (more than all devices, or not dividing them with options.all_devices; not
/// dividing the heads, batch …).
void check_space(const SpaceLimits& limits, const SpaceOptions& options);

/// Whether every layer has options to run so.
inline bool is_listed(const SpaceOptions& options, const Configuration& configuration) {
  return options.listed == nullptr ||
         options.listed->has(to_execution(configuration),
                             configuration.sharding == ShardingKind::manual);
}

/// Configurations that differ in vp alone: configuration.vp … most_vp.
struct ConfigurationRange {
  Configuration configuration;
  std::int32_t most_vp = 1;

  bool is_single() const { return configuration.vp == most_vp; }
};

// The space before trading time for memory (no recomputation, no offload, the lowest ZeRO stage
// that costs no time) is every configuration with
//   tp·cp·pp·dp ≤ devices, or = with options.all_devices; tp divides the heads, or the layers in
//   shardings that a search gives; 2·cp divides the sequence;
//   ep divides the experts and cp·dp, or, where tp leaves experts whole, tp·cp·dp, both nested in
//   these axes; with whole experts there is sequence parallelism; dp·micro_batch divides the batch;
//   pp·vp ≤ layers; vp > 1 needs micro-batches divisible by pp; at most kMostPlannedPasses passes;
//   for tp > 1 all tensor_shardings(); both axis orders.
// Listed in steps: families, their degrees (splits), and what has these.

/// Configurations that share tp, cp, ep and whole_experts, the only fields of `configuration` that
/// count.
struct Family {
  Configuration configuration;
  std::int64_t most_replicas = 1;  ///< No more copies of a stage (pp·dp) have room.
};
/// In a fixed order.
std::vector<Family> families(const SpaceLimits& limits, const SpaceOptions& options);

/// Degrees dp that the batch allows, ascending.
std::vector<int> data_degrees(const SpaceLimits& limits, const SpaceOptions& options);

/// The most copies of a stage (pp·dp), `most` at most, that one of the data_degrees() and the
/// layers allow; 0: none.
std::int64_t most_replicas(std::span<const int> data_degrees, const SpaceLimits& limits,
                           const SpaceOptions& options, std::int64_t most);

/// Degrees of a family with pp·dp = replicas, in a fixed order; other fields are as by default.
std::vector<Configuration> splits_of_family(const Configuration& family, std::int64_t replicas,
                                            const SpaceLimits& limits, const SpaceOptions& options);

/// Micro-batch sizes that divide `samples`, ascending.
std::vector<int> micro_batches_of(std::int64_t samples, const SpaceOptions& options);

/// Micro-batch sizes with the degrees of `split`, ascending.
std::vector<int> micro_batches(const Configuration& split, const SpaceLimits& limits,
                               const SpaceOptions& options);

/// How the ranks of a tensor-parallel group share the layers' work.
struct TensorSharding {
  bool sequence_parallel = false;
  ShardingKind sharding = ShardingKind::manual;
};
Configuration with_form(Configuration configuration, const TensorSharding& form);

/// The forms that may be with the degrees of `split`, manual ones first.
std::vector<TensorSharding> tensor_shardings(const Configuration& split, const SpaceLimits& limits,
                                             const SpaceOptions& options);
/// The same with those of a family, of which pp and dp are still open.
std::vector<TensorSharding> shardings_of_family(const Configuration& family,
                                                const SpaceLimits& limits,
                                                const SpaceOptions& options);

/// All configurations of the space with the degrees of `split`, in a fixed order.
std::vector<ConfigurationRange> ranges_of_split(const Configuration& split,
                                                const SpaceLimits& limits,
                                                const SpaceOptions& options);

/// The whole space in a row, most devices first, for planners that look at all of it.
std::vector<Configuration> base_configurations(const SpaceLimits& limits,
                                               const SpaceOptions& options);

/// The configurations one step further towards less memory: more recomputation, the next ZeRO
/// stage, another kind of offload. Respects the restrictions; of a finite list of options the next
/// recomputation that is in it. `has_host`: offload is possible at all.
std::vector<Configuration> relaxations(const Configuration& configuration,
                                       const SpaceLimits& limits, const SpaceOptions& options,
                                       bool has_host);

}  // namespace braid
