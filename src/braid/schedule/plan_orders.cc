#include "braid/schedule/plan_orders.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/stage_rounds.h"
#include "braid/schedule/evaluate.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/greedy_order.h"
#include "braid/schedule/group_search.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/order_search.h"
#include "braid/schedule/order_timeline.h"
#include "braid/schedule/order_timing.h"
#include "braid/schedule/plan_graph.h"
#include "braid/schedule/plan_pipeline.h"

namespace braid {
namespace {

/// Passes up to which a kind of schedule takes seconds: those timed once, those that time the
/// stages again for each micro-batch, and exact ones.
constexpr std::int64_t kMostTimed = std::int64_t{1} << 20;
constexpr std::int64_t kMostRetimed = std::int64_t{1} << 12;
constexpr std::int64_t kMostSearched = 256;

/// Rounds of 2BW before and while the time of one is taken.
constexpr std::int64_t kRounds = 4;

void check_passes(const StageGraph& graph, const std::string& name, std::int64_t most) {
  std::int64_t passes = 0;
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    passes += 2 * graph.round_micro_batches(s);
  }
  if (passes <= most) return;
  throw Error(fmt::format("the schedule {} is for at most {} passes, not {}", name, most, passes),
              "take larger micro-batches or a smaller batch");
}

/// kFkB, with what it runs by in `order`.
WorkOrder grouped_order(const TimedGraph& timed, const KChoice& choice, PlanOrder& order) {
  const StageGraph& graph = timed.graph;
  const std::size_t stages = graph.stages.size();
  if (choice.best) {
    check_passes(graph, "kfkb with the best k", kMostRetimed);
    GroupSearchResult found = search_groups(timed);
    order.k = std::move(found.k);
    order.k_tried = found.tried;
    order.all_k_tried = found.all;
    return k_f_k_b_order(graph, order.k, found.warm_ups);
  }
  if (choice.k.size() == 1) {
    order.k.assign(stages, choice.k.front());
    return k_f_k_b_order(graph, order.k,
                         warm_ups_of(graph, order.k, table_in_flight(graph, order.k)));
  }
  if (choice.k.size() != stages) {
    throw Error(
        fmt::format("the plan has {} stages, and k is given for {}", stages, choice.k.size()),
        "give one k for all stages or one for each");
  }
  check_passes(graph, "kfkb with a k for each stage", kMostRetimed);
  order.k = choice.k;
  return k_f_k_b_order(graph, order.k, least_warm_ups(timed, order.k));
}

/// The schedule of that name, but for 2BW, the search and kFkB.
std::optional<WorkOrder> order_named(const TimedGraph& timed, const std::string& name) {
  const StageGraph& graph = timed.graph;
  if (name == "gpipe") return gpipe_order(graph);
  if (name == "1f1b") return one_f_one_b_order(graph);
  if (name == "interleaved") return interleaved_order(graph);
  if (name == "zb-h1") return zero_bubble_h1_order(graph);
  if (name == "zb-h2") return zero_bubble_h2_order(graph);
  if (name == "zb-v") return zero_bubble_v_order(graph);
  if (name == "greedy") {
    check_passes(graph, name, kMostRetimed);
    return greedy_order(timed);
  }
  if (name == "1f1b-least") {
    check_passes(graph, name, kMostRetimed);
    const std::vector<std::int64_t> ones(graph.stages.size(), 1);
    return k_f_k_b_order(graph, ones, least_warm_ups(timed, ones));
  }
  return std::nullopt;
}

/// Passes and optimizer steps of the device that has most of them, in whatever order.
double most_busy_s(const TimedGraph& timed) {
  std::vector<double> busy_s(device_count(timed.graph), 0);
  for (std::size_t s = 0; s < timed.costs.size(); ++s) {
    const StageCost& cost = timed.costs[s];
    const auto micro_batches = static_cast<double>(timed.graph.micro_batches(s));
    busy_s[at(timed.graph.stages[s].device)] +=
        micro_batches * (cost.forward_s + cost.backward_s()) + cost.optimizer_s;
  }
  return *std::max_element(busy_s.begin(), busy_s.end());
}

void add_summary(const OrderTiming& timing, PlanOrder& result) {
  result.iteration_time_s = timing.time_s;
  result.in_flight = timing.peak_in_flight;
  double busy_s = 0;
  for (std::size_t d = 0; d < timing.devices.size(); ++d) {
    const DeviceTiming& device = timing.devices[d];
    busy_s = std::max(busy_s, device.busy_s);
    if (device.peak_bytes <= result.peak_memory_bytes) continue;
    result.peak_memory_bytes = device.peak_bytes;
    result.tightest_stage = static_cast<std::int64_t>(d);
  }
  result.idle_s = std::max(0.0, timing.time_s - busy_s);
}

/// What an order of a plan takes, and what was timed for that.
struct TimedOrder {
  PlanOrder order;
  TimedGraph timed;
  OrderTiming timing;
};

/// 2BW over many rounds: what one more of them takes, with two versions of the weights. The timing
/// is of the first of them.
TimedOrder two_buffered(const Plan& plan, TimedGraph timed, bool record) {
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  for (std::size_t s = 0; s < memory.size(); ++s) {
    if (timed.costs[s].parameters_s > 0) {
      throw Error(fmt::format("stage {} gathers its parameters at the start", s + 1),
                  "PipeDream-2BW never stops for that; take ZeRO 0 or 3");
    }
    timed.costs[s].fixed_bytes += memory[s].weights;
  }
  timed.graph.rounds = 2 * kRounds;
  const OrderTiming after = time_order(timed, two_buffered_order(timed.graph));
  timed.graph.rounds = kRounds;
  OrderTiming before = time_order(timed, two_buffered_order(timed.graph), record);
  PlanOrder result;
  add_summary(after, result);
  const double busy_s = (after.time_s - result.idle_s) / static_cast<double>(2 * kRounds);
  result.iteration_time_s = (after.time_s - before.time_s) / static_cast<double>(kRounds);
  result.idle_s = std::max(0.0, result.iteration_time_s - busy_s);
  return {std::move(result), std::move(timed), std::move(before)};
}

TimedGraph graph_for(const Plan& plan, const std::string& name) {
  return timed_graph_of(plan, {.weights_apart = name.starts_with("zb-"), .folded = name == "zb-v"});
}

/// The schedule of that name, but for 2BW, with what was found on the way in `made`.
WorkOrder flushed_order(const TimedGraph& timed, const std::string& name, const KChoice& choice,
                        PlanOrder& made) {
  std::optional<WorkOrder> order;
  if (name == "search") {
    check_passes(timed.graph, name, kMostSearched);
    OrderSearchResult found = search_order(timed, {});
    made.proved = found.proved;
    order = std::move(found.order);
  } else {
    order = name == "kfkb" ? grouped_order(timed, choice, made) : order_named(timed, name);
  }
  if (!order) throw Error("no schedule is called " + name);
  return std::move(*order);
}

TimedOrder timed_order(const Plan& plan, const std::string& name, const KChoice& choice,
                       bool record) {
  TimedGraph timed = graph_for(plan, name);
  check_passes(timed.graph, name, name == "2bw" ? kMostTimed / (3 * kRounds) : kMostTimed);
  TimedOrder result;
  if (name == "2bw") {
    result = two_buffered(plan, std::move(timed), record);
  } else {
    PlanOrder made;
    const WorkOrder order = flushed_order(timed, name, choice, made);
    result.timing = time_order(timed, order, record);
    add_summary(result.timing, made);
    result.order = std::move(made);
    result.timed = std::move(timed);
  }
  if (!std::isfinite(result.order.iteration_time_s)) {
    throw Error("the plan's times add up to more than a number can hold",
                "check the layers' times and the number of micro-batches");
  }
  return result;
}

/// Throws Error where a stage has several chunks and the schedule is for one, or other than two for
/// ZB-V.
void check_chunks(const Plan& plan, const std::string& name) {
  static constexpr std::string_view kOfOne[] = {"1f1b", "1f1b-least", "zb-h1",  "zb-h2",
                                                "kfkb", "2bw",        "greedy", "search"};
  const bool of_two = name == "zb-v";
  if (!of_two && std::find(std::begin(kOfOne), std::end(kOfOne), name) == std::end(kOfOne)) return;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::size_t chunks = plan.stages[s].chunks.size();
    if (chunks == (of_two ? 2 : 1)) continue;
    throw Error(fmt::format("stage {} has {} of layers", s + 1,
                            counted(static_cast<std::int64_t>(chunks), "chunk")),
                of_two ? name + " is defined for two; plan with --vp 2"
                       : name + " is defined for one; gpipe and interleaved take several");
  }
}

/// The plan as the schedule of that name lays it out.
Plan laid_out(const Plan& plan, const std::string& name) {
  check_chunks(plan, name);
  if (name != "zb-v" || plan.stages.empty()) return plan;
  const bool pairs = std::all_of(plan.stages.begin(), plan.stages.end(),
                                 [](const Stage& stage) { return stage.chunks.size() == 2; });
  return pairs && is_uniform(plan) ? folded_plan(plan) : plan;
}

}  // namespace

std::vector<PassRun> runs_of(const std::vector<Work>& works) {
  std::vector<PassRun> runs;
  std::int64_t forwards = 0, backwards = 0;
  for (const Work& work : works) {
    assert(work.kind != WorkKind::input_gradient && work.kind != WorkKind::weight_gradient);
    if (work.kind == WorkKind::forward) {
      if (backwards > 0) {
        append_passes(runs, forwards, backwards);
        forwards = backwards = 0;
      }
      ++forwards;
    }
    if (work.kind == WorkKind::backward) ++backwards;
  }
  append_passes(runs, forwards, backwards);
  return runs;
}

const std::vector<std::string>& plan_order_names() {
  static const std::vector<std::string> names = {"gpipe", "1f1b",   "1f1b-least", "interleaved",
                                                 "zb-h1", "zb-h2",  "zb-v",       "kfkb",
                                                 "2bw",   "greedy", "search"};
  return names;
}

PlanOrder order_of_plan(const Plan& plan, const std::string& name, const KChoice& choice) {
  return timed_order(laid_out(plan, name), name, choice, false).order;
}

PlanOrder order_as_planned(const Plan& plan) {
  const Metrics metrics = measure(plan);
  PlanOrder result;
  result.iteration_time_s = metrics.iteration_time_s;
  result.idle_s = std::max(0.0, metrics.iteration_time_s - most_busy_s(timed_graph_of(plan)));
  result.peak_memory_bytes = metrics.peak_memory_bytes;
  result.tightest_stage = static_cast<std::int64_t>(metrics.tightest_stage);
  const bool chunks = std::any_of(plan.stages.begin(), plan.stages.end(),
                                  [](const Stage& stage) { return stage.chunks.size() > 1; });
  if (!chunks) result.in_flight = micro_batches_held(plan);
  return result;
}

DrawnOrder draw_order(const Plan& plan, const std::string& name, const KChoice& choice) {
  DrawnOrder drawn;
  drawn.plan = laid_out(plan, name);
  drawn.plan.claims.reset();
  for (Stage& stage : drawn.plan.stages) {
    if (!stage.own) continue;
    stage.own->warm_up.reset();
    stage.own->passes.clear();
  }
  const TimedOrder run = timed_order(drawn.plan, name, choice, true);
  drawn.order = run.order;
  drawn.timeline = timeline_of(run.timed, run.timing, stage_loads(drawn.plan));
  drawn.timeline.iteration_time_s = run.order.iteration_time_s;
  return drawn;
}

OrderedPlan ordered_plan(const Plan& plan, const std::string& name, const KChoice& choice) {
  OrderedPlan result;
  result.plan = laid_out(plan, name);
  if (name == "2bw") {
    throw Error("the schedule 2bw has no flush between iterations",
                "take one of the other schedules, such as 1f1b");
  }
  const TimedGraph timed = graph_for(result.plan, name);
  result.graph = timed.graph;
  if (!name.empty()) {
    check_passes(timed.graph, name, kMostTimed);
    PlanOrder made;
    result.order = flushed_order(timed, name, choice, made);
    return result;
  }
  const PlanPipeline own = pipeline_of(plan, kMostPassesWithEvents);
  result.order = schedule_of(own.pipeline);
  for (std::vector<Work>& works : result.order.devices) {
    for (Work& work : works) {
      const std::int32_t chunk = work.stage % own.pipeline.vp;
      work.stage = chunk * own.pipeline.pp + work.stage / own.pipeline.vp;
    }
  }
  check_work_order(result.graph, result.order);
  return result;
}

}  // namespace braid
