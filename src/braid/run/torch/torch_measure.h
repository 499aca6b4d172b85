#pragma once

#include <cstdint>

#include "braid/graph/graph.h"
#include "braid/run/rank_link.h"
#include "braid/run/trained_times.h"

namespace braid {

// What a run of a plan does, measured by itself.

/// A layer of `batch` times its graph's samples, forward and back, in f32 with the threads of this
/// process: medians of so many samples of a millisecond or one pass, fewer where a pass takes long.
/// A pass goes through as many such layers, forward and then back, as touch twice the cache (64 at
/// most): in a run, too, a layer's weights have left the cache when it has its turn, while its
/// input was just written. Throws Error for what cannot be trained.
TrainedTime measured_layer(const Graph& graph, std::int64_t batch, std::int64_t samples,
                           double cache_bytes);

/// Messages and all-reduces of 4 bytes up to the largest by powers of four, over the link's group
/// 0, which has all processes. Medians of so many.
void measure_messages(RankLink& link, std::int32_t rank, const TrainedTimesJob& job,
                      TrainedTimes& times);

}  // namespace braid
