#include "braid/schedule/order_timing.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"
#include "braid/schedule/held_stashes.h"

namespace braid {
namespace {

/// Throws when the order is none of the graph's schedules.
std::vector<DeviceProgress> checked_run(const TimedGraph& timed, const WorkOrder& order,
                                        RunObserver* observer) {
  check_turns(timed.graph, order);
  RunSettings form;
  form.observer = observer;
  std::vector<DeviceProgress> run = run_order(timed, order, form);
  if (const Work* work = stuck_at(order, run)) throw_stuck(std::int64_t{1} + work->stage, *work);
  return run;
}

class WorkRecorder : public RunObserver {
 public:
  WorkRecorder(const WorkOrder& order, OrderTiming& timing) : timing_(timing) {
    timing.work.resize(order.devices.size());
    for (std::size_t d = 0; d < order.devices.size(); ++d) {
      timing.work[d].reserve(order.devices[d].size());
    }
  }
  void worked(std::size_t device, const Work& work, double start_s, double end_s) override {
    timing_.work[device].push_back({start_s, end_s, work});
  }
  void sent(const PartEvent& part) override { timing_.parts.push_back(part); }

 private:
  OrderTiming& timing_;
};

/// What a device holds from the start of a piece of work on.
void start(const StageCost& cost, WorkKind kind, HeldStashes& held) {
  if (kind == WorkKind::forward) held.take(cost.stash_bytes);
}

/// What it holds after it.
void end(const StageCost& cost, WorkKind kind, HeldStashes& held) {
  if (kind == WorkKind::backward) held.drop(cost.stash_bytes);
  if (kind == WorkKind::input_gradient) held.shrink(cost.stash_bytes - cost.weight_stash_bytes);
  if (kind == WorkKind::weight_gradient) held.drop(cost.weight_stash_bytes);
}

/// What depends on the devices' orders alone, whenever they run: how long they are busy and what
/// they hold.
void add_usage(const TimedGraph& timed, const WorkOrder& order, OrderTiming& timing) {
  const std::size_t stages = timed.costs.size();
  std::vector<HeldStashes> memory(order.devices.size());
  for (std::size_t s = 0; s < stages; ++s) {
    memory[at(timed.graph.stages[s].device)].add_stage(timed.costs[s].fixed_bytes,
                                                       timed.costs[s].offloaded_bytes);
  }
  std::vector<std::int64_t> in_flight(stages, 0);
  timing.peak_in_flight.assign(stages, 0);
  for (std::size_t d = 0; d < order.devices.size(); ++d) {
    HeldStashes& held = memory[d];
    DeviceTiming& device = timing.devices[d];
    device.peak_bytes = held.bytes();
    for (std::size_t i = 0; i < order.devices[d].size(); ++i) {
      const Work& work = order.devices[d][i];
      const std::size_t s = at(work.stage);
      const StageCost& cost = timed.costs[s];
      start(cost, work.kind, held);
      const double bytes = held.bytes();
      end(cost, work.kind, held);
      if (!timing.work.empty()) {
        timing.work[d][i].bytes = bytes;
        timing.work[d][i].left_bytes = held.bytes();
      }
      if (work.kind == WorkKind::reduce_gradients) continue;
      device.busy_s += work_s(cost, work.kind);
      device.peak_bytes = std::max(device.peak_bytes, bytes);
      if (work.kind == WorkKind::forward) {
        timing.peak_in_flight[s] = std::max(timing.peak_in_flight[s], ++in_flight[s]);
      } else if (work.kind == WorkKind::backward || work.kind == WorkKind::input_gradient) {
        --in_flight[s];
      }
    }
  }
}

}  // namespace

TimedGraph timeless(StageGraph graph) {
  TimedGraph timed;
  timed.costs.resize(graph.stages.size());
  timed.transfer_s.assign(graph.edges.size(), 0);
  timed.graph = std::move(graph);
  return timed;
}

void check_work_order(const StageGraph& graph, const WorkOrder& order) {
  checked_run(timeless(graph), order, nullptr);
}

OrderTiming time_order(const TimedGraph& timed, const WorkOrder& order, bool record) {
  OrderTiming timing;
  std::vector<DeviceProgress> run;
  if (record) {
    WorkRecorder recorder(order, timing);
    run = checked_run(timed, order, &recorder);
  } else {
    run = checked_run(timed, order, nullptr);
  }
  for (const DeviceProgress& device : run) {
    timing.devices.push_back({device.start_s, std::max(device.free_s, device.reduced_s)});
    timing.time_s = std::max(timing.time_s, timing.devices.back().end_s);
  }
  add_usage(timed, order, timing);
  return timing;
}

}  // namespace braid
