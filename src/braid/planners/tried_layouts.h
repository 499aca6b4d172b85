#pragma once

#include <cstdint>
#include <vector>

#include "braid/planners/chain_job.h"
#include "braid/planners/configuration.h"
#include "braid/planners/layout.h"

namespace braid {

struct LayerTable;

// Under 1F1B every assignment of consecutive layers is looked at. Under GPipe and interleaving, of
// which no search over all of them is known, these are tried:

/// How layers are dealt out to the chunks of a pipeline.
enum class Dealing : std::uint8_t {
  by_time,      ///< So that the chunk that takes longest takes least.
  by_number,    ///< As many to each chunk, one more to the first ones.
  as_trainers,  ///< layers_of_chunks (plan/dealt_layers.h).
};

/// Ends of the chunks, `chunks` of them, at most as many as layers. Cost: linear.
void deal(const ChainJob& chain, const LayerTable& table, int chunks, Dealing how, Ends& ends);

/// An assignment that is tried, as far as it does not depend on the number of micro-batches, on
/// sharding and on where stages lie.
struct TriedLayout {
  Dealing dealing = Dealing::by_time;
  std::vector<Layout::StageKind> stage_kinds;
  /// Of the stage that has most to do: its passes of a micro-batch, and those of the first chunks
  /// of the stages before it (0 where the model branches).
  double busiest_s = 0, before_s = 0;

  /// No time with this assignment is less.
  double least_s(std::int64_t num_micro_batches) const {
    return before_s + static_cast<double>(num_micro_batches) * busiest_s;
  }
};

/// Those of one pp and vp.
struct TriedLayouts {
  std::vector<TriedLayout> layouts;  ///< Different ones, in the order of Dealing.
  // At most, of any of them and those of the same pp and a larger vp, over the stages' last chunks:
  double last_kept_bytes = 0;          ///< Stash on the device, of all of these chunks.
  std::int32_t last_chunk_layers = 0;  ///< Of one of them.
};

/// For a configuration with this table, which keeps them. Cost: linear in the layers the first
/// time.
const TriedLayouts& tried_layouts(const ChainJob& chain, LayerTable& table,
                                  const Configuration& configuration, Layout& scratch);

}  // namespace braid
