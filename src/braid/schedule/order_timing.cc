#include "braid/schedule/order_timing.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// One way of an edge, as seen from the stage whose passes start the transfers.
struct PartHop {
  std::int32_t target = 0;  ///< Stage.
  std::int32_t edge = 0;
  std::int32_t link = -1;  ///< -1: within a device.
  std::int64_t split = 1;  ///< Parts of one of the source's micro-batches, …
  std::int64_t join = 1;   ///< … of which the target's need so many.
  double time_s = 0;
};

/// PartHops grouped by the stage they start from; first[s] as in EdgeGroups.
struct PartHops {
  std::vector<std::size_t> first;
  std::vector<PartHop> hops;
};

PartHops make_hops(const TimedGraph& timed, bool backward,
                   std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t>& links) {
  const StageGraph& graph = timed.graph;
  EdgeGroups groups = backward ? edges_by_target(graph) : edges_by_source(graph);
  PartHops result;
  result.hops.reserve(groups.edges.size());
  for (const std::size_t e : groups.edges) {
    const StageEdge& edge = graph.edges[e];
    const std::int32_t from = backward ? edge.target : edge.source;
    const std::int32_t to = backward ? edge.source : edge.target;
    const GraphStage& source = graph.stages[at(from)];
    const GraphStage& target = graph.stages[at(to)];
    PartHop hop{to, static_cast<std::int32_t>(e)};
    if (source.device != target.device) {
      hop.link =
          links.try_emplace({source.device, target.device}, static_cast<std::int32_t>(links.size()))
              .first->second;
      hop.time_s = timed.transfer_s[e];
    }
    hop.split = std::max<std::int64_t>(1, source.micro_batch / target.micro_batch);
    hop.join = std::max<std::int64_t>(1, target.micro_batch / source.micro_batch);
    result.hops.push_back(hop);
  }
  result.first = std::move(groups.first);
  return result;
}

/// Runs devices as far as they get, waking those whose next pass has got its last input. All
/// transfers of a link start on one device, so that their order is that of its passes and no queue
/// of events is needed.
class Run {
 public:
  Run(const TimedGraph& timed, const WorkOrder& order, bool record)
      : timed_(timed),
        graph_(timed.graph),
        order_(order),
        record_(record),
        forward_hops_(make_hops(timed, false, links_)),
        backward_hops_(make_hops(timed, true, links_)),
        stages_(graph_.stages.size()),
        devices_(device_count(graph_)),
        link_free_(links_.size(), 0) {
    assert(timed.costs.size() == graph_.stages.size());
    assert(timed.transfer_s.size() == graph_.edges.size());
    prepare_inputs();
    result_.devices.resize(devices_.size());
    result_.peak_in_flight.assign(stages_.size(), 0);
    if (record_) result_.work.resize(devices_.size());
  }

  OrderTiming run() {
    if (order_.devices.size() != devices_.size()) {
      throw Error("the schedule is for " + std::to_string(order_.devices.size()) +
                  " devices, the pipeline for " + std::to_string(devices_.size()));
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto device = at(graph_.stages[s].device);
      const StageCost& cost = timed_.costs[s];
      devices_[device].kept_bytes += cost.fixed_bytes;
      devices_[device].offloaded_bytes =
          std::max(devices_[device].offloaded_bytes, cost.offloaded_bytes);
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      result_.devices[d].peak_bytes = devices_[d].bytes();
      if (record_) result_.work[d].reserve(order_.devices[d].size());
      awake_.push_back(d);
    }
    while (!awake_.empty()) {
      const std::size_t device = awake_.back();
      awake_.pop_back();
      advance(device);
    }
    check_complete();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      DeviceTiming& timing = result_.devices[d];
      timing.end_s = std::max(devices_[d].free_s, devices_[d].network_free_s);
      result_.time_s = std::max(result_.time_s, timing.end_s);
    }
    return std::move(result_);
  }

 private:
  struct Inputs {
    double ready_s = 0;
    std::int64_t missing = 0;
  };
  struct StageState {
    std::size_t forward_inputs = 0, backward_inputs = 0;  ///< Offsets into inputs_.
    std::int64_t micro_batches = 0;
    std::int64_t forwards = 0, backwards = 0, weights = 0;  ///< Done. Weights: second halves.
    std::int64_t reductions = 0, optimizers = 0;
    bool halves = false;
    double reduced_s = 0;
  };
  struct DeviceState {
    std::size_t next = 0;
    double free_s = 0;
    double network_free_s = 0;
    double kept_bytes = 0;
    double offloaded_bytes = 0;  ///< Of one stash.
    std::int64_t stashes = 0;
    bool started = false;

    double bytes() const {
      return kept_bytes + static_cast<double>(std::min<std::int64_t>(stashes, 2)) * offloaded_bytes;
    }
  };

  void prepare_inputs() {
    std::size_t offset = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      StageState& state = stages_[s];
      state.micro_batches = graph_.micro_batches(s);
      state.forward_inputs = offset;
      state.backward_inputs = offset + at(state.micro_batches);
      offset = state.backward_inputs + at(state.micro_batches);
    }
    inputs_.resize(offset);
    std::vector<std::int64_t> activations(stages_.size(), 0), gradients(stages_.size(), 0);
    for (const PartHop& hop : forward_hops_.hops) activations[at(hop.target)] += hop.join;
    for (const PartHop& hop : backward_hops_.hops) gradients[at(hop.target)] += hop.join;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageState& state = stages_[s];
      for (std::int64_t k = 0; k < state.micro_batches; ++k) {
        inputs_[state.forward_inputs + at(k)].missing = activations[s];
        inputs_[state.backward_inputs + at(k)].missing = gradients[s];
      }
    }
  }

  static bool is_gradient(WorkKind kind) {
    return kind == WorkKind::backward || kind == WorkKind::input_gradient;
  }

  [[noreturn]] static void fail(const Work& work, const std::string& what) {
    throw Error("stage " + std::to_string(std::int64_t{1} + work.stage) + ": " + describe(work) +
                    " " + what,
                "the schedule is none of this pipeline's");
  }

  /// Gradients of a round are complete on the device that is about to use them.
  bool gradients_done(const StageState& state, std::int64_t round) const {
    const std::int64_t done = state.halves ? state.weights : state.backwards;
    return done >= (round + 1) * (state.micro_batches / graph_.rounds);
  }

  void check_turn(std::size_t device, const Work& work) {
    if (work.stage < 0 || at(work.stage) >= stages_.size()) {
      throw Error("stage " + std::to_string(std::int64_t{1} + work.stage) +
                  " of the schedule does not exist");
    }
    if (at(graph_.stages[at(work.stage)].device) != device) fail(work, "is on another's device");
    StageState& state = stages_[at(work.stage)];
    const auto in_turn = [&](std::int64_t done, std::int64_t count) {
      if (work.index != done || done >= count) fail(work, "is out of turn");
    };
    switch (work.kind) {
      case WorkKind::forward:
        return in_turn(state.forwards, state.micro_batches);
      case WorkKind::backward:
      case WorkKind::input_gradient: {
        in_turn(state.backwards, state.micro_batches);
        if (work.index >= state.forwards) fail(work, "comes before its forward pass");
        const bool halves = work.kind == WorkKind::input_gradient;
        if (state.backwards == 0) state.halves = halves;
        if (state.halves != halves) fail(work, "is not of the form of those before");
        return;
      }
      case WorkKind::weight_gradient:
        in_turn(state.weights, state.micro_batches);
        if (!state.halves || work.index >= state.backwards) {
          fail(work, "comes before its input gradients");
        }
        return;
      case WorkKind::reduce_gradients:
      case WorkKind::optimizer: {
        const bool reduction = work.kind == WorkKind::reduce_gradients;
        in_turn(reduction ? state.reductions : state.optimizers, graph_.rounds);
        if (!gradients_done(state, work.index)) fail(work, "comes before its gradients");
        if (reduction && state.optimizers > work.index) fail(work, "comes after the optimizer");
        return;
      }
    }
  }

  void advance(std::size_t device) {
    DeviceState& state = devices_[device];
    const std::vector<Work>& order = order_.devices[device];
    for (; state.next < order.size(); ++state.next) {
      const Work& work = order[state.next];
      check_turn(device, work);
      const Inputs* inputs = nullptr;
      const StageState& stage = stages_[at(work.stage)];
      if (work.kind == WorkKind::forward) {
        inputs = &inputs_[stage.forward_inputs + at(work.index)];
      } else if (is_gradient(work.kind)) {
        inputs = &inputs_[stage.backward_inputs + at(work.index)];
      }
      if (inputs != nullptr && inputs->missing > 0) return;
      run_work(device, work, inputs == nullptr ? 0 : inputs->ready_s);
    }
  }

  void run_work(std::size_t device, const Work& work, double ready_s) {
    DeviceState& state = devices_[device];
    StageState& stage = stages_[at(work.stage)];
    const StageCost& cost = timed_.costs[at(work.stage)];
    if (work.kind == WorkKind::reduce_gradients) {
      ++stage.reductions;
      const double start_s = std::max(state.free_s, state.network_free_s);
      state.network_free_s = stage.reduced_s = start_s + cost.reduce_gradients_s;
      if (record_) {
        const double bytes = state.bytes();
        result_.work[device].push_back({start_s, state.network_free_s, work, bytes, bytes});
      }
      return;
    }
    double duration_s = 0;
    double freed_bytes = 0;
    std::int64_t freed_stashes = 0;
    switch (work.kind) {
      case WorkKind::forward:
        duration_s = cost.forward_s;
        ++stage.forwards;
        state.kept_bytes += cost.stash_bytes;
        ++state.stashes;
        break;
      case WorkKind::backward:
        duration_s = cost.backward_s();
        ++stage.backwards;
        freed_bytes = cost.stash_bytes;
        freed_stashes = 1;
        break;
      case WorkKind::input_gradient:
        duration_s = cost.input_gradient_s;
        ++stage.backwards;
        freed_bytes = cost.stash_bytes - cost.weight_stash_bytes;
        break;
      case WorkKind::weight_gradient:
        duration_s = cost.weight_gradient_s;
        ++stage.weights;
        freed_bytes = cost.weight_stash_bytes;
        freed_stashes = 1;
        break;
      case WorkKind::optimizer:
        duration_s = cost.optimizer_s;
        ++stage.optimizers;
        ready_s = stage.reduced_s;
        break;
      case WorkKind::reduce_gradients:
        break;
    }
    const double start_s = std::max(state.free_s, ready_s);
    double end_s = start_s + duration_s;
    if (work.kind == WorkKind::forward && work.index == 0) {
      end_s = std::max(end_s, cost.parameters_s);
    }
    DeviceTiming& timing = result_.devices[device];
    if (!state.started) timing.start_s = start_s;
    state.started = true;
    state.free_s = end_s;
    timing.busy_s += duration_s;
    const double bytes = state.bytes();
    timing.peak_bytes = std::max(timing.peak_bytes, bytes);
    state.kept_bytes -= freed_bytes;
    state.stashes -= freed_stashes;
    if (record_) result_.work[device].push_back({start_s, end_s, work, bytes, state.bytes()});
    if (work.kind == WorkKind::forward) {
      std::int64_t& peak = result_.peak_in_flight[at(work.stage)];
      peak = std::max(peak, stage.forwards - stage.backwards);
      send(forward_hops_, work, end_s);
    } else if (is_gradient(work.kind)) {
      send(backward_hops_, work, end_s);
    }
  }

  void send(const PartHops& hops, const Work& work, double end_s) {
    const bool backward = work.kind != WorkKind::forward;
    for (std::size_t h = hops.first[at(work.stage)]; h < hops.first[at(work.stage) + 1]; ++h) {
      const PartHop& hop = hops.hops[h];
      const StageState& target = stages_[at(hop.target)];
      const std::size_t inputs = backward ? target.backward_inputs : target.forward_inputs;
      for (std::int64_t i = 0; i < hop.split; ++i) {
        const std::int64_t part = work.index * hop.split + i;
        double arrived_s = end_s;
        if (hop.link >= 0) {
          double& free_s = link_free_[at(hop.link)];
          const double sent_s = std::max(free_s, end_s);
          arrived_s = free_s = sent_s + hop.time_s;
          if (record_) result_.parts.push_back({sent_s, arrived_s, hop.edge, backward, part});
        }
        arrive(hop.target, backward, part / hop.join, inputs, arrived_s);
      }
    }
  }

  void arrive(std::int32_t stage, bool backward, std::int64_t micro_batch, std::size_t offset,
              double time_s) {
    Inputs& inputs = inputs_[offset + at(micro_batch)];
    inputs.ready_s = std::max(inputs.ready_s, time_s);
    if (--inputs.missing > 0) return;
    const auto device = at(graph_.stages[at(stage)].device);
    const DeviceState& state = devices_[device];
    if (state.next >= order_.devices[device].size()) return;
    const Work& next = order_.devices[device][state.next];
    if (next.stage == stage && next.index == micro_batch &&
        (backward ? is_gradient(next.kind) : next.kind == WorkKind::forward)) {
      awake_.push_back(device);
    }
  }

  void check_complete() const {
    const auto finished = [&](std::size_t d) {
      return devices_[d].next == order_.devices[d].size();
    };
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageState& state = stages_[s];
      if (!finished(at(graph_.stages[s].device))) continue;
      const auto missing = [&](WorkKind kind, std::int64_t done) {
        if (done < state.micro_batches) {
          fail({kind, static_cast<std::int32_t>(s), done}, "is missing");
        }
      };
      missing(WorkKind::forward, state.forwards);
      missing(WorkKind::backward, state.backwards);
      if (state.halves) missing(WorkKind::weight_gradient, state.weights);
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (finished(d)) continue;
      const Work& work = order_.devices[d][devices_[d].next];
      throw Error("stage " + std::to_string(std::int64_t{1} + work.stage) +
                      " waits for ever before " + describe(work),
                  "the order of passes contradicts the flow of data between the stages");
    }
  }

  const TimedGraph& timed_;
  const StageGraph& graph_;
  const WorkOrder& order_;
  const bool record_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> links_;  ///< By devices.
  PartHops forward_hops_, backward_hops_;
  std::vector<StageState> stages_;
  std::vector<DeviceState> devices_;
  std::vector<double> link_free_;
  std::vector<Inputs> inputs_;
  std::vector<std::size_t> awake_;
  OrderTiming result_;
};

}  // namespace

std::string describe(const Work& work) {
  const std::string index = std::to_string(work.index);
  switch (work.kind) {
    case WorkKind::forward:
      return "the forward pass of micro-batch " + index;
    case WorkKind::backward:
      return "the backward pass of micro-batch " + index;
    case WorkKind::input_gradient:
      return "the input gradients of micro-batch " + index;
    case WorkKind::weight_gradient:
      return "the weight gradients of micro-batch " + index;
    case WorkKind::reduce_gradients:
      return "the reduction of round " + index;
    case WorkKind::optimizer:
      return "the optimizer step of round " + index;
  }
  return {};
}

TimedGraph timeless(StageGraph graph) {
  TimedGraph timed;
  timed.costs.resize(graph.stages.size());
  timed.transfer_s.assign(graph.edges.size(), 0);
  timed.graph = std::move(graph);
  return timed;
}

void check_work_order(const StageGraph& graph, const WorkOrder& order) {
  time_order(timeless(graph), order);
}

OrderTiming time_order(const TimedGraph& timed, const WorkOrder& order, bool record) {
  return Run(timed, order, record).run();
}

}  // namespace braid
