#pragma once

#include <cstdint>
#include <span>

#include "braid/search/partition.h"

namespace braid {

/// What even_stages() evens out.
struct InterleavedLoads {
  std::span<const double> layer_s;  ///< Time of each layer, all passes of a micro-batch.
  int pp = 1;
  std::int64_t num_micro_batches = 1;
  bool fills_in_order = true;  ///< A stage begins when the first chunks of those before it end.
};

/// Moves layers over cuts of an interleaved pipeline so that the longest of its stages' paths gets
/// shorter. A stage's path: the first chunks of all stages before it, once, and its own chunks for
/// each micro-batch. A move takes a layer from the stage of the longest path to that of the
/// shortest for which no path is as long then: over one cut between each two neighbours, of the
/// first round first, then of the others in turn. The last round stays as it is, and no chunk
/// becomes empty. `ends`: of the chunks in model order, pp·vp of them. Where it ends no single such
/// move helps. Cost: O(layers + moves·pp·pp), at most four moves for each stage.
///
/// Example: 48 layers of 1 s each and a head of 4 s on 2 stages, dealt 12 12 12 12 + head: of many
/// micro-batches the stages take 24 and 28 s each. Two layers move, 13 11 12 12 + head and then
/// 14 10 12 12 + head, where both take 26 s.
void even_stages(const InterleavedLoads& loads, Ends& ends);

}  // namespace braid
