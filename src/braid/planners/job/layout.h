#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/index.h"
#include "braid/plan/stash_peak.h"
#include "braid/plan/totals.h"
#include "braid/search/partition.h"

namespace braid {

/// How layers are dealt to the chunks of a pipeline, with chunks and stages that are alike listed
/// once, whatever the layers cost. Chunks are in model order: chunk c of stage s is number c·pp +
/// s.
struct LayoutShape {
  Ends ends;
  /// Layers of one kind after another.
  struct Run {
    std::int32_t layer_kind = 0;
    int count = 0;
  };
  std::vector<Run> runs;                  ///< Of all kinds of chunks.
  std::vector<std::int32_t> last_run;     ///< Of each kind: one past its last one.
  std::vector<std::int32_t> first_chunk;  ///< Of each kind.
  std::vector<std::int32_t> kind_of_chunk;
  std::vector<std::int32_t> first_stage;  ///< Of each kind.
  /// Chunks of one kind after another in a stage.
  struct ChunkRun {
    std::int32_t chunk_kind = 0;
    int chunks = 0;
  };
  std::vector<ChunkRun> chunk_runs;          ///< Of all kinds of stages.
  std::vector<std::int32_t> last_chunk_run;  ///< Of each kind: one past its last one.
  std::vector<std::int32_t> kind_of_stage;

  std::span<const ChunkRun> chunk_runs_of(std::size_t stage_kind) const {
    const auto first = stage_kind == 0 ? 0 : last_chunk_run[stage_kind - 1];
    return std::span(chunk_runs).subspan(at(first), at(last_chunk_run[stage_kind] - first));
  }
};

/// What the chunks and stages of a shape come to: it depends on a handful of kinds, however deep
/// the model is.
struct LayoutCosts {
  std::vector<ChunkTotals> chunk_kinds;

  struct StageKind {
    int first_stage = 0;
    /// As memory_of() sees a stage: sums over all chunks. Of a stage of several chunks the stashes
    /// are left out, see below.
    RunSums memory;
    StageParameters parameters;
    /// Stashes of several interleaved chunks (fill_stash_peaks), in the first of the stages that
    /// are alike: it holds most.
    StashPeak peak;
  };
  std::vector<StageKind> stage_kinds;
};

/// Layers dealt out, and what that costs.
struct Layout : LayoutShape, LayoutCosts {
  std::vector<StashRun> stashes;  ///< Of one stage, while its peak is looked for.
};

/// Deals layers of these kinds out by `ends` (pp·vp of them). Cost: O(layers).
void fill_shape(std::span<const std::int32_t> kind_of_layer, int pp, int vp,
                std::span<const std::int32_t> ends, LayoutShape& shape);
/// `costs`: of each kind of layer. Cost: O(kinds of chunks and stages and their runs).
void fill_costs(const LayoutShape& shape, std::span<const LayerCost> costs, int vp,
                LayoutCosts& out);
/// Both.
void fill_layout(std::span<const std::int32_t> kind_of_layer, std::span<const LayerCost> costs,
                 int pp, int vp, std::span<const std::int32_t> ends, Layout& layout);

/// Fills in the peaks of interleaved stages; `stashes` is scratch. Cost: O(runs of each kind
/// of stage).
void fill_stash_peaks(const LayoutShape& shape, int pp, std::int64_t num_micro_batches,
                      std::vector<StashRun>& stashes, LayoutCosts& costs);
void fill_stash_peaks(int pp, std::int64_t num_micro_batches, Layout& layout);

}  // namespace braid
