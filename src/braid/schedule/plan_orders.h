#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/schedule/order_timing.h"
#include "braid/schedule/work_order.h"

namespace braid {

/// A plan's stages as schedules of stage graphs see them (stage_graph.h): chunk c of stage s is
/// graph stage c·pp + s on device s. Backward passes are halved as the profile has them, with
/// recomputation and ZeRO's waits in the first half; a halved pass keeps its whole stash until the
/// second half ends, which is an upper estimate. Parts take the longer of both ways. Of the
/// gradients' synchronisation what outlasts the stage's last pass counts, as in simulate(). Throws
/// Error naming the stage where the plan has no such form: parameters that are gathered at the
/// start (ZeRO-1 and 2), activations kept on the host, micro-batches of sizes that do not nest.
/// `weights_apart`: weights' gradients do not follow right after the inputs', and communication
/// that they would hide (LayerCost::hidden_tp_s) shows.
TimedGraph timed_graph_of(const Plan& plan, bool weights_apart = false);

/// The order of a device's whole passes, those of one stage in turn, as a plan's stage lists it.
std::vector<PassRun> runs_of(const std::vector<Work>& works);

/// Names of the schedules that order_of_plan knows, in the order of docs/schedules.md.
const std::vector<std::string>& plan_order_names();

/// How a plan would run by another schedule.
struct PlanOrder {
  double iteration_time_s = 0;  ///< Of 2BW: of one of many iterations without a flush.
  double idle_s = 0;            ///< Of the device that does most: all but its passes and optimizer.
  double peak_memory_bytes = 0;  ///< Of the fullest device.
  std::int64_t tightest_stage = 0;
  std::vector<std::int64_t> in_flight;  ///< [graph stage] at most.
  std::optional<bool> proved;           ///< Of search: whether no schedule is shorter.
};

/// Times the plan's stages under the schedule of that name (generators in graph_orders.h,
/// greedy_order.h, order_search.h). `k` is for kfkb. Throws Error naming the stage where the
/// schedule is not defined for them, for unknown names, and for more passes than it can be made for
/// in seconds.
PlanOrder order_of_plan(const Plan& plan, const std::string& name, std::int64_t k = 2);

/// The plan with its stages' passes in the order of the schedule of that name, in a form of their
/// own each: to be simulated, drawn and verified as any other. For schedules of whole backward
/// passes in one round on stages of one chunk. Throws Error for others, and as order_of_plan.
Plan plan_in_order(const Plan& plan, const std::string& name, std::int64_t k = 2);

}  // namespace braid
