#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/plan/stash_peak.h"
#include "braid/plan/totals.h"
#include "braid/planners/partition.h"

namespace braid {

/// Layers dealt to the chunks of a pipeline, with chunks and stages that are alike listed once:
/// what a configuration costs then depends on a handful of kinds, however deep the model is.
/// Chunks are in model order: chunk c of stage s is number c·pp + s.
struct Layout {
  Ends ends;
  std::vector<ChunkTotals> chunk_kinds;
  std::vector<std::int32_t> first_chunk;  ///< Of each kind.
  std::vector<std::int32_t> kind_of_chunk;

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
  std::vector<std::int32_t> kind_of_stage;
  std::vector<ChunkStash> stashes;  ///< Of one stage, while its peak is looked for.
};

/// Deals layers out by `ends` (pp·vp of them). `kind_of_layer` indexes `costs`. Cost: O(layers).
void fill_layout(std::span<const std::int32_t> kind_of_layer, std::span<const LayerCost> costs,
                 int pp, int vp, std::span<const std::int32_t> ends, Layout& layout);

/// Fills in the peaks of interleaved stages. Cost: O(vp) for each kind of stage.
void fill_stash_peaks(int pp, int vp, std::int64_t num_micro_batches, Layout& layout);

}  // namespace braid
