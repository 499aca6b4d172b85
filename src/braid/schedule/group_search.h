#pragma once

#include <cstdint>
#include <vector>

#include "braid/schedule/order_timing.h"

namespace braid {

struct GroupSearch {
  /// Choices of k up to which all are tried.
  std::int64_t most_choices = 4096;
  /// Passes timed, each again in every timing, that the search may take: of more choices, or of
  /// choices that would take more in one timing each, some are tried.
  std::int64_t most_work = std::int64_t{1} << 24;
};

struct GroupSearchResult {
  std::vector<std::int64_t> k, warm_ups;  ///< [stage]
  double time_s = 0;                      ///< Of the iteration.
  std::int64_t tried = 0;                 ///< Choices timed, or passed over by a bound.
  bool all = false;                       ///< Every choice was.
};

/// How many passes of a kind each stage runs in a row under kFkB for the shortest iteration, with
/// the fewest warm-up passes that lose no time for these (least_warm_ups). Of as short ones that
/// with the least memory on the fullest device, then on all devices together, then the smallest k
/// from the first stage on.
///
/// Exact within the limits: stage by stage from the sinks, those with whose passes some stage ends
/// too late whatever those before it do are passed over. Beyond them a descent: from the best k for
/// all stages, stage by stage from the sinks the best of the powers of two and all micro-batches,
/// as long as that helps and work is left. Deterministic. One stage per device, one round.
GroupSearchResult search_groups(const TimedGraph& timed, const GroupSearch& limits = {});

}  // namespace braid
