#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "braid/plan/plan.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/stash_peak.h"

namespace braid {

/// Sums (and maxima) of LayerCost over the layers of a chunk: all that times and memory depend on.
struct ChunkTotals {
  PassTime forward, recompute, backward_input, backward_weight;
  double hidden_tp_s = 0;
  double model_flops = 0;
  double dense_parameters = 0;
  double expert_parameters = 0;
  double stash_bytes = 0;
  double offloaded_bytes = 0;
  double working_bytes = 0;             ///< Largest of any layer.
  double largest_layer_parameters = 0;  ///< Dense and expert elements of the layer that has most.
  double fixed_bytes = 0;               ///< Stated by the profile, see LayerCost::fixed_bytes.
  double gradient_bytes = 0;            ///< Stated by the profile, see LayerCost::gradient_bytes.
  std::uint64_t weight_shapes = 0;      ///< LayerCost::weight_shapes of any layer.
  int layers = 0;

  /// Adds `count` layers of this cost.
  void add(const LayerCost& cost, int count);

  ChunkStash stash() const { return {stash_bytes - offloaded_bytes, offloaded_bytes}; }
  double time_s() const {
    return forward.total_s() + recompute.total_s() + backward_input.total_s() +
           backward_weight.total_s();
  }
};

/// Totals of a plan's chunk. Cost: linear in its layers.
ChunkTotals totals_of(const Profile& profile, const Chunk& chunk);

/// Times of collectives over a data-parallel context's groups, kept so that a search asks for each
/// once. Belongs to one pair of groups; forgets the oldest beyond its few places.
class SyncMemo {
 public:
  /// The kept time, or compute() kept from now on.
  template <typename Compute>
  double time_s(Collective collective, double dense_bytes, double expert_bytes,
                const Compute& compute) {
    for (std::size_t i = 0; i < used_; ++i) {
      const Entry& entry = entries_[i];
      if (entry.dense_bytes == dense_bytes && entry.expert_bytes == expert_bytes &&
          entry.collective == collective) {
        return entry.time_s;
      }
    }
    const double time_s = compute();
    entries_[next_] = {dense_bytes, expert_bytes, time_s, collective};
    next_ = (next_ + 1) % entries_.size();
    used_ = std::max(used_, next_ == 0 ? entries_.size() : next_);
    return time_s;
  }

 private:
  struct Entry {
    double dense_bytes = 0, expert_bytes = 0, time_s = 0;
    Collective collective = Collective::all_reduce;
  };
  std::array<Entry, 16> entries_;
  std::size_t used_ = 0, next_ = 0;
};

/// Groups of named devices that synchronise at the same time, where they do not lie as a job-wide
/// parallel form says.
struct NamedReplicas {
  std::vector<std::vector<std::int64_t>> dense, expert;
};

/// What sharding and synchronising over data-parallel ranks depends on, for one stage.
struct DataParallelContext {
  Precision precision;
  Zero zero = Zero::none;
  bool offload_optimizer = false;
  bool offload_weights = false;
  bool overlap_gradients = true;
  GroupSpan dense_group;   ///< Ranks that hold the same dense parameters: dp × cp, of one copy.
  GroupSpan expert_group;  ///< Ranks that hold the same experts: dp × cp / ep, of one copy.
  GroupSpan copy_group;    ///< Ranks that hold the same shard in each copy of the state.
  double copies = 1;       ///< Their number, Parallelism::replicate.
  /// [shape of weights]: of a gradient placeholder; null: there are none.
  const std::vector<double>* placeholder_bytes = nullptr;
  double dense_ranks = 1;  ///< Their sizes.
  double expert_ranks = 1;
  const System* system = nullptr;
  const Chip* chip = nullptr;
  SyncMemo* memo =
      nullptr;  ///< Where a search keeps collective times of these groups; may be null.
  const NamedReplicas* named = nullptr;  ///< In place of the two groups, when not null.
};

/// Context of a stage laid out as `parallel` says, under a trainer that behaves as `does`. `system`
/// outlives the result.
DataParallelContext data_parallel_context(const Parallelism& parallel, const Precision& precision,
                                          const System& system, const TrainerBehaviour& does = {});

/// Distance between neighbouring ranks of `axis` in device numbers.
std::int64_t stride_of(const Parallelism& parallel, Axis axis);

/// First device of stage `stage`.
std::int64_t first_device(const Parallelism& parallel, int stage);

/// All devices of stage `stage`, ascending.
std::vector<std::int64_t> stage_devices(const Parallelism& parallel, int stage);

/// Communicators of the layers of a stage, where a plan takes the first `devices` of `system`.
LayerGroups layer_groups(const Parallelism& parallel, std::int64_t devices, const System& system);

/// Whether layer_groups() are the same for any number of devices (lies_evenly).
bool layer_groups_lie_evenly(const Parallelism& parallel, const System& system);

/// Memory of a stage at its fullest moment: parameter state by the ZeRO stage (Rajbhandari et al.
/// 2020, §5), what its chunks stash then, largest transient. docs/cost-model.md, "Memory".
MemoryBreakdown memory_of(std::span<const ChunkTotals> chunks, const StashPeak& stashes,
                          const DataParallelContext& context);

/// Of a stage of one chunk that holds `in_flight` micro-batches at most.
MemoryBreakdown memory_of(const ChunkTotals& chunk, std::int64_t in_flight,
                          const DataParallelContext& context);

/// Passes of a chunk of a stage.
ChunkLoad chunk_load(const ChunkTotals& chunk, const DataParallelContext& context);

/// Parameters of a stage and what a profile states of their gradients.
struct StageParameters {
  double dense = 0, expert = 0;
  double stated_gradient_bytes = 0;
  int layers = 0;

  /// Adds `chunks` alike.
  void add(const ChunkTotals& chunk, int chunks = 1);
  friend bool operator==(const StageParameters&, const StageParameters&) = default;
};
StageSync stage_sync(const StageParameters& parameters, const DataParallelContext& context);

/// Neighbouring chunks of a stage that are alike, as the synchronisation of gradients sees them.
struct ChunkGradients {
  StageParameters parameters;  ///< Of one.
  double backward_s = 0;       ///< Of a pass of one, whole.
  int chunks = 1;
};

/// Lets the gradients of each chunk of a stage follow that chunk's own last backward pass: fills
/// the gradients' part of `sync`, which stage_sync has made. Chunks end in reverse, with
/// `last_passes` backward passes of each in a row at the least; these are taken to leave no gaps,
/// which hides no more than there is. One chunk, or a trainer that does not overlap: `sync` stays
/// as it is. Cost: linear in `chunks`, however many are alike.
void sync_by_chunk(std::span<const ChunkGradients> chunks, std::int64_t last_passes,
                   const DataParallelContext& context, StageSync& sync);

/// Backward passes of a chunk that come one after another before those of the chunk before it
/// begin, at the iteration's end: pp when interleaved, all micro-batches under GPipe.
std::int64_t last_passes_of(ScheduleKind schedule, int pp, std::int64_t num_micro_batches);

/// Time of the optimizer step over `parameters` elements on one device: bound by the traffic of the
/// optimizer's state, the gradients and the weights; by the host link when the state lives there.
/// Per element it falls as there are more of them. 0 where the memory's rate is not known (0).
double optimizer_time_s(double parameters, const Precision& precision, const Chip& chip,
                        bool offloaded);

/// Times of a stage for its schedule: chunk_load of each chunk, stage_sync of all and
/// sync_by_chunk. docs/cost-model.md, "Data parallelism".
StageLoad load_of(std::span<const ChunkTotals> chunks, const DataParallelContext& context,
                  std::int64_t last_passes = 1);

}  // namespace braid
