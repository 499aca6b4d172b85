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

/// An assignment that is tried, as far as it does not depend on sharding and on where stages lie.
/// Of the number of micro-batches no more counts than whether it is pp, 2·pp, or more
/// (stash_peak()).
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

/// Different ones, in the order of Dealing.
using TriedLayouts = std::vector<TriedLayout>;

/// For a configuration with this table, which keeps them. Cost: linear in the layers the first
/// time.
const TriedLayouts& tried_layouts(const ChainJob& chain, LayerTable& table,
                                  const Configuration& configuration, Layout& scratch);

/// What the stages' last chunks have at most in any assignment that is tried for a pp and a vp, or
/// the same pp and a larger vp.
struct LastChunks {
  double kept_bytes = 0;    ///< Stash on the device, of all stages' last chunks together.
  std::int32_t layers = 0;  ///< Of one of them.
};
/// The same way.
const LastChunks& last_chunks(const ChainJob& chain, LayerTable& table,
                              const Configuration& configuration);

}  // namespace braid
