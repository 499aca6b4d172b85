#pragma once

#include "braid/plan/plan.h"
#include "braid/schedule/order_timing.h"

namespace braid {

struct PlanGraphForm {
  /// Weights' gradients do not follow right after the inputs', and communication that they would
  /// hide (LayerCost::hidden_tp_s) shows.
  bool weights_apart = false;
  /// Odd chunks lead back from the last stage to the first (folded_plan): graph stages are numbered
  /// that way.
  bool folded = false;
};

/// A plan's stages as schedules of stage graphs see them (stage_graph.h): chunk c of stage s is
/// graph stage c·pp + s (of odd chunks of a folded plan c·pp + pp - 1 - s) on device s. Backward
/// passes are halved as the profile has them, with recomputation and ZeRO's waits in the first
/// half; a halved pass keeps its whole stash until the second half ends, which is an upper
/// estimate. Parts take the longer of both ways. Parameters that are gathered at the start (ZeRO-1
/// and 2) hold up the stage's first pass, and of the gradients' synchronisation what outlasts its
/// last pass counts, as in simulate(). Throws Error naming the stage where the plan has no such
/// form: micro-batches of sizes that do not nest.
TimedGraph timed_graph_of(const Plan& plan, const PlanGraphForm& form = {});

/// The plan with its stages' second chunks dealt out in reverse, so that the last stage goes on
/// with its own: the V of ZB-V. For uniform plans of two chunks a stage (asserted).
Plan folded_plan(Plan plan);

}  // namespace braid
