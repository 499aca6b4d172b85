#include "braid/schedule/plan_orders.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/totals.h"
#include "braid/schedule/graph_orders.h"
#include "braid/schedule/greedy_order.h"
#include "braid/schedule/in_flight.h"
#include "braid/schedule/order_search.h"
#include "braid/schedule/pipeline.h"

namespace braid {
namespace {

/// Passes up to which a kind of schedule takes seconds: those timed once, those that time the
/// stages again for each micro-batch, and exact ones.
constexpr std::int64_t kMostTimed = std::int64_t{1} << 20;
constexpr std::int64_t kMostRetimed = std::int64_t{1} << 12;
constexpr std::int64_t kMostSearched = 256;

/// Rounds of 2BW before and while the time of one is taken.
constexpr std::int64_t kRounds = 4;

void check_stage(const Plan& plan, const StageLoad& load, std::size_t stage) {
  const auto refuse = [&](const char* what) {
    throw Error(
        fmt::format("stage {} {}, which other schedules are not timed with", stage + 1, what),
        "simulate the plan by its own schedule");
  };
  if (load.sync.parameter_sync_s > 0) refuse("gathers its parameters at the start");
  for (const Chunk& chunk : plan.stages[stage].chunks) {
    if (totals_of(plan.profile, chunk).offloaded_bytes > 0) refuse("keeps activations on the host");
  }
}

void check_passes(const StageGraph& graph, const std::string& name, std::int64_t most) {
  std::int64_t passes = 0;
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    passes += 2 * graph.round_micro_batches(s);
  }
  if (passes <= most) return;
  throw Error(fmt::format("the schedule {} is for at most {} passes, not {}", name, most, passes),
              "take larger micro-batches or a smaller batch");
}

/// The schedule of that name, but for 2BW.
std::optional<WorkOrder> order_named(const TimedGraph& timed, const std::string& name,
                                     std::int64_t k) {
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
  if (name == "kfkb") {
    const std::vector<std::int64_t> ks(graph.stages.size(), k);
    return k_f_k_b_order(graph, ks, warm_ups_of(graph, ks, table_in_flight(graph, ks)));
  }
  if (name == "1f1b-least") {
    check_passes(graph, name, kMostRetimed);
    const std::vector<std::int64_t> ones(graph.stages.size(), 1);
    return k_f_k_b_order(graph, ones, least_warm_ups(timed, ones));
  }
  return std::nullopt;
}

PlanOrder summary(const OrderTiming& timing) {
  PlanOrder result;
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
  return result;
}

/// 2BW over many rounds: what one more of them takes, with two versions of the weights.
PlanOrder two_buffered(const Plan& plan, TimedGraph timed) {
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  for (std::size_t s = 0; s < memory.size(); ++s) timed.costs[s].fixed_bytes += memory[s].weights;
  timed.graph.rounds = kRounds;
  const OrderTiming before = time_order(timed, two_buffered_order(timed.graph));
  timed.graph.rounds = 2 * kRounds;
  const OrderTiming after = time_order(timed, two_buffered_order(timed.graph));
  PlanOrder result = summary(after);
  const double busy_s = (after.time_s - result.idle_s) / static_cast<double>(2 * kRounds);
  result.iteration_time_s = (after.time_s - before.time_s) / static_cast<double>(kRounds);
  result.idle_s = std::max(0.0, result.iteration_time_s - busy_s);
  return result;
}

}  // namespace

TimedGraph timed_graph_of(const Plan& plan, bool weights_apart) {
  if (plan.stages.empty()) throw Error("the plan has no stages");
  const std::size_t stages = plan.stages.size();
  const std::size_t chunks = plan.stages.front().chunks.size();
  const std::vector<StageLoad> loads = stage_loads(plan);
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  TimedGraph timed;
  timed.graph.batch = plan.global_batch;
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t s = 0; s < stages; ++s) {
      if (c == 0) check_stage(plan, loads[s], s);
      const ChunkLoad& load = loads[s].chunks.at(c);
      const Parallelism form = form_of(plan, s);
      timed.graph.stages.push_back(
          {static_cast<std::int32_t>(s), std::int64_t{1} * form.dp * form.micro_batch});
      StageCost cost;
      cost.forward_s = load.forward_s();
      cost.weight_gradient_s = load.backward_weight.total_s();
      cost.input_gradient_s = load.backward_s() - cost.weight_gradient_s;
      if (weights_apart) cost.input_gradient_s += load.hidden_tp_s;
      cost.stash_bytes = totals_of(plan.profile, plan.stages[s].chunks[c]).stash_bytes;
      cost.weight_stash_bytes = cost.stash_bytes;
      if (c == 0) {
        cost.optimizer_s = loads[s].sync.optimizer_s;
        cost.reduce_gradients_s =
            std::max(0.0, tail_s(loads[s].sync, load.backward_s()) - cost.optimizer_s);
        cost.fixed_bytes = memory[s].device_total() - memory[s].activations;
      }
      timed.costs.push_back(cost);
    }
  }
  const auto place = [&](std::int32_t stage, std::int32_t chunk) {
    return static_cast<std::int32_t>(at(chunk) * stages + at(stage));
  };
  for (const EdgeLoad& load : edge_loads(plan)) {
    const StageEdge edge{place(load.edge.source_stage, load.edge.source_chunk),
                         place(load.edge.target_stage, load.edge.target_chunk)};
    const auto source = static_cast<double>(timed.graph.stages[at(edge.source)].micro_batch);
    const auto target = static_cast<double>(timed.graph.stages[at(edge.target)].micro_batch);
    const double back_s = load.backward_transfer_s < 0 ? load.transfer_s : load.backward_transfer_s;
    const double part = std::min(source, target);
    timed.graph.edges.push_back(edge);
    timed.transfer_s.push_back(
        std::max(load.transfer_s * (part / source), back_s * (part / target)));
  }
  check_stage_graph(timed.graph);
  return timed;
}

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

PlanOrder order_of_plan(const Plan& plan, const std::string& name, std::int64_t k) {
  TimedGraph timed = timed_graph_of(plan, name.starts_with("zb-"));
  check_passes(timed.graph, name, name == "2bw" ? kMostTimed / (3 * kRounds) : kMostTimed);
  if (name == "2bw") return two_buffered(plan, std::move(timed));
  if (name == "search") {
    check_passes(timed.graph, name, kMostSearched);
    OrderSearchResult found = search_order(timed, {});
    PlanOrder result = summary(time_order(timed, found.order.value()));
    result.proved = found.proved;
    return result;
  }
  const std::optional<WorkOrder> order = order_named(timed, name, k);
  if (!order) throw Error("no schedule is called " + name);
  PlanOrder result = summary(time_order(timed, *order));
  if (!std::isfinite(result.iteration_time_s)) {
    throw Error("the plan's times add up to more than a number can hold",
                "check the layers' times and the number of micro-batches");
  }
  return result;
}

Plan plan_in_order(const Plan& plan, const std::string& name, std::int64_t k) {
  const char* reason = name == "interleaved"        ? "runs several chunks of a stage"
                       : name == "2bw"              ? "runs on without a flush"
                       : name.substr(0, 3) == "zb-" ? "halves backward passes"
                                                    : nullptr;
  if (reason != nullptr) {
    throw Error(fmt::format("the schedule {} {}, which stages cannot list", name, reason),
                "take gpipe, 1f1b, 1f1b-least, kfkb, greedy or search");
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].chunks.size() == 1) continue;
    throw Error(fmt::format("stage {} has {} chunks, whose passes it cannot list", s + 1,
                            plan.stages[s].chunks.size()),
                "take a plan of one chunk a stage");
  }
  const TimedGraph timed = timed_graph_of(plan);
  check_passes(timed.graph, name, name == "search" ? kMostSearched : kMostTimed);
  const std::optional<WorkOrder> order =
      name == "search" ? search_order(timed, {}).order : order_named(timed, name, k);
  if (!order) throw Error("no schedule is called " + name);
  Plan listed = plan;
  listed.parallel.schedule = ScheduleKind::one_f_one_b;
  listed.claims.reset();
  for (std::size_t s = 0; s < listed.stages.size(); ++s) {
    Stage& stage = listed.stages[s];
    if (!stage.own) {
      const Parallelism& p = plan.parallel;
      stage.own.emplace();
      stage.own->micro_batch = p.micro_batch;
      stage.own->ep = p.ep;
      stage.own->sequence_parallel = p.sequence_parallel;
      stage.own->zero = p.zero;
      stage.own->offload_optimizer = p.offload_optimizer;
      stage.own->offload_weights = p.offload_weights;
    }
    stage.own->warm_up.reset();
    stage.own->passes = runs_of(order->devices[s]);
  }
  return listed;
}

}  // namespace braid
