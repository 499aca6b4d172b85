#pragma once

#include <span>

#include "braid/plan/stage_load.h"
#include "braid/schedule/order_timing.h"
#include "braid/schedule/timeline.h"

namespace braid {

/// The timeline of an order of a plan's stages, of which `timed` is the graph (plan_graph.h) and
/// `timing` what time_order recorded: chunk c of stage s is what device s has among the graph
/// stages from c·pp on. The synchronisation of gradients is drawn as its stage's `loads` have it,
/// part of it behind the last pass. The iteration time is that of all rounds. Peaks of memory are
/// those of `timing`, to the last bit.
Timeline timeline_of(const TimedGraph& timed, const OrderTiming& timing,
                     std::span<const StageLoad> loads);

}  // namespace braid
