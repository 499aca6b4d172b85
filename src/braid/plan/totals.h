#pragma once

#include <span>

#include "braid/plan/plan.h"
#include "braid/plan/stage_load.h"

namespace braid {

/// Sums (and maxima) of LayerCost over the layers of a chunk: all that times and memory depend on.
struct ChunkTotals {
  PassTime forward, recompute, backward_input, backward_weight;
  double model_flops = 0;
  double dense_parameters = 0;
  double expert_parameters = 0;
  double stash_bytes = 0;
  double offloaded_bytes = 0;
  double working_bytes = 0;             ///< Largest of any layer.
  double largest_layer_parameters = 0;  ///< Dense and expert elements of the layer that has most.
  double fixed_bytes = 0;               ///< Stated by the profile, see Option::fixed_bytes.
  double gradient_bytes = 0;            ///< Stated by the profile, see Option::gradient_bytes.
  int layers = 0;

  /// Adds `count` layers of this cost.
  void add(const LayerCost& cost, int count);

  double time_s() const {
    return forward.total_s() + recompute.total_s() + backward_input.total_s() +
           backward_weight.total_s();
  }
};

/// Totals of a plan's chunk. Cost: linear in its layers.
ChunkTotals totals_of(const Profile& profile, const Chunk& chunk);

/// What sharding and synchronising over data-parallel ranks depends on, for one stage.
struct DataParallelContext {
  Precision precision;
  Zero zero = Zero::none;
  bool offload_optimizer = false;
  bool offload_weights = false;
  GroupSpan dense_group;   ///< Ranks that hold the same dense parameters: dp × cp.
  GroupSpan expert_group;  ///< Ranks that hold the same experts: dp × cp / ep.
  double dense_ranks = 1;  ///< Their sizes.
  double expert_ranks = 1;
  const System* system = nullptr;
  const Chip* chip = nullptr;
};

/// Context of a stage laid out as `parallel` says, its first device being `first`. `system`
/// outlives the result.
DataParallelContext data_parallel_context(const Parallelism& parallel, const Precision& precision,
                                          const System& system);

/// Distance between neighbouring ranks of `axis` in device numbers.
std::int64_t stride_of(const Parallelism& parallel, Axis axis);

/// First device of stage `stage`.
std::int64_t first_device(const Parallelism& parallel, int stage);

/// All devices of stage `stage`, ascending.
std::vector<std::int64_t> stage_devices(const Parallelism& parallel, int stage);

/// Communicators of the layers of a stage.
LayerGroups layer_groups(const Parallelism& parallel, const System& system);

/// Memory of a stage: parameter state by the ZeRO stage (Rajbhandari et al. 2020, §5), stash times
/// chunks in flight, largest transient. docs/cost-model.md, "Memory".
MemoryBreakdown memory_of(std::span<const ChunkTotals> chunks, std::int64_t in_flight_chunks,
                          const DataParallelContext& context);

/// Times of a stage for its schedule. docs/cost-model.md, "Data parallelism".
StageLoad load_of(std::span<const ChunkTotals> chunks, const DataParallelContext& context);

}  // namespace braid
