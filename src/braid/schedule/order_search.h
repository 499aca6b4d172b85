#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/schedule/order_timing.h"

namespace braid {

struct OrderSearch {
  bool halves = false;  ///< Backward passes in two halves.
  /// [stage]: most micro-batches between the start of the forward and the end of the backward pass
  /// (of its first half); 0 or no entry: any number.
  std::vector<std::int64_t> most_in_flight;
  std::int64_t most_states = 200'000;  ///< Partial schedules kept before the search gives up.
};

struct OrderSearchResult {
  std::optional<WorkOrder> order;  ///< The best found; nullopt: none keeps within the memory, if
                                   ///< `proved`, or none was found.
  double time_s = 0;               ///< Of that order.
  double bound_s = 0;              ///< No order ends earlier.
  bool proved = false;             ///< The search was complete: time_s is the least there is.
  std::int64_t states = 0;
};

/// The shortest schedule of a small stage graph: exact as long as it stays within `most_states`.
/// Partial schedules that have run the same passes are compared: one whose devices, links and parts
/// on their way are all at least as early as another's makes that one superfluous, and so does a
/// schedule found before that ends no later than a partial one can. Starts from the published
/// schedules. One stage per device, one round; any graph, sizes and times. Throws Error naming the
/// stage otherwise. Deterministic. Memory and time: most_states times the passes.
OrderSearchResult search_order(const TimedGraph& timed, const OrderSearch& limits);

}  // namespace braid
