#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/work_order.h"

namespace braid {

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
  std::vector<std::int64_t> k;          ///< Of kfkb [stage].
  std::int64_t k_tried = 0;  ///< Choices of k that were compared, where k was searched, …
  bool all_k_tried = false;  ///< … and whether there are no others.
};

/// How many passes of a kind kfkb runs in a row.
struct KChoice {
  /// For all stages, with the warm-up of the table (in_flight.h), or [stage], with the fewest
  /// warm-up passes that lose no time.
  std::vector<std::int64_t> k = {2};
  bool best = false;  ///< Those that search_groups finds instead.
};

/// Times the plan's stages under the schedule of that name (generators in graph_orders.h,
/// greedy_order.h, order_search.h). `choice` is for kfkb; zb-v runs a plan of two chunks a stage
/// folded (folded_plan). Throws Error naming the stage where the schedule is not defined for them,
/// for unknown names, and for more passes than it can be made for in seconds.
PlanOrder order_of_plan(const Plan& plan, const std::string& name, const KChoice& choice = {});

/// The same of the plan's own schedule, with the warm-ups and orders of passes that its stages
/// have: time and memory are those of measure(). `in_flight` is empty where stages have several
/// chunks.
PlanOrder order_as_planned(const Plan& plan);

/// A plan by another schedule, to be drawn.
struct DrawnOrder {
  Plan plan;  ///< Without orders and warm-ups of its own; of zb-v as folded_plan has it.
  PlanOrder order;
  Timeline timeline;  ///< Of 2BW several rounds; else its iteration time is the order's.
};

/// The same with all that happens.
DrawnOrder draw_order(const Plan& plan, const std::string& name, const KChoice& choice = {});

/// What the devices of a plan's stages do, in which order.
struct OrderedPlan {
  Plan plan;         ///< As the schedule lays it out: of zb-v as folded_plan has it.
  StageGraph graph;  ///< Chunk c of stage s is graph stage c·pp + s on device s.
  WorkOrder order;   ///< One that check_work_order accepts; reductions and steps may be left out.
};

/// The plan under its own schedule, with the warm-ups and orders of passes that its stages have
/// (empty name), or under the schedule of that name. Throws Error as order_of_plan; for 2bw, whose
/// rounds have no flush between them; and where micro-batches of neighbours do not nest.
OrderedPlan ordered_plan(const Plan& plan, const std::string& name = "",
                         const KChoice& choice = {});

}  // namespace braid
