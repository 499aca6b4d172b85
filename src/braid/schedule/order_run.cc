#include "braid/schedule/order_run.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// One way of an edge, as seen from the stage whose passes start the transfers.
struct PartHop {
  std::int32_t target = 0;  ///< Stage, …
  std::int32_t device = 0;  ///< … its device …
  std::size_t inputs = 0;   ///< … and where what its passes wait for is.
  std::int32_t edge = 0;
  std::int32_t link = -1;           ///< -1: within a device.
  std::int64_t split = 1;           ///< Parts of one of the source's micro-batches.
  std::int64_t part_samples = 1;    ///< Of one part, …
  std::int64_t target_samples = 1;  ///< … and of one of the target's micro-batches.
  double time_s = 0;
};

/// PartHops grouped by the stage they start from; first[s] as in EdgeGroups.
struct PartHops {
  std::vector<std::size_t> first;
  std::vector<PartHop> hops;

  std::span<const PartHop> from(std::int32_t stage) const {
    const std::size_t s = at(stage);
    return std::span(hops).subspan(first[s], first[s + 1] - first[s]);
  }
};

/// Whether a pass waits for gradients, and starts their transfers.
bool is_gradient(WorkKind kind) {
  return kind == WorkKind::backward || kind == WorkKind::input_gradient;
}

/// Runs devices as far as they get, waking those whose next pass has got its last input. All
/// transfers of a link start on one device, so that their order is that of its passes and no queue
/// of events is needed.
class OrderRun {
 public:
  OrderRun(const TimedGraph& timed, const WorkOrder& order, const RunSettings& form)
      : graph_(timed.graph), observer_(form.observer) {
    assert(timed.costs.size() == graph_.stages.size());
    assert(timed.transfer_s.size() == graph_.edges.size());
    stages_.reserve(graph_.stages.size());
    std::size_t inputs = 0;
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      stages_.emplace_back(timed.costs[s], inputs, at(graph_.micro_batches(s)));
      inputs += 2 * stages_[s].micro_batches;
    }
    inputs_.resize(inputs);
    for (const Stage& stage : stages_) {
      // A backward pass also waits for its own forward pass.
      for (std::size_t k = 0; k < stage.micro_batches; ++k) {
        inputs_[stage.backward_inputs + k].missing = 1;
      }
    }
    make_hops(edges_by_source(graph_), timed.transfer_s, form, false, forward_hops_);
    make_hops(edges_by_target(graph_),
              form.backward_transfer_s.empty() ? timed.transfer_s : form.backward_transfer_s, form,
              true, backward_hops_);
    link_free_.resize(links_.size(), 0);
    devices_.reserve(order.devices.size());
    for (const std::vector<Work>& works : order.devices) devices_.push_back({works, {}});
  }

  std::vector<DeviceProgress> run() {
    awake_.resize(devices_.size());
    std::iota(awake_.begin(), awake_.end(), std::size_t{0});
    while (!awake_.empty()) {
      const std::size_t device = awake_.back();
      awake_.pop_back();
      advance(device);
    }
    std::vector<DeviceProgress> result;
    result.reserve(devices_.size());
    for (const Device& device : devices_) result.push_back(device.progress);
    return result;
  }

 private:
  struct Inputs {
    double ready_s = 0;
    std::int64_t missing = 0;
  };
  struct Stage {
    Stage(const StageCost& cost, std::size_t inputs, std::size_t micro_batches_of)
        : parameters_s(cost.parameters_s),
          micro_batches(micro_batches_of),
          forward_inputs(inputs),
          backward_inputs(inputs + micro_batches_of) {
      for (std::size_t kind = 0; kind < std::size(duration_s); ++kind) {
        duration_s[kind] = work_s(cost, static_cast<WorkKind>(kind));
      }
    }

    double duration_s[kWorkKinds];  ///< [kind]
    double parameters_s = 0;        ///< 0 once the first forward pass has run.
    double reduced_s = 0;
    std::size_t micro_batches = 0;
    std::size_t forward_inputs = 0, backward_inputs = 0;  ///< In inputs_: those of micro-batch 0.
  };
  struct Device {
    std::span<const Work> order;
    DeviceProgress progress;
  };

  void make_hops(EdgeGroups groups, std::span<const double> time_s, const RunSettings& form,
                 bool backward, PartHops& result) {
    result.hops.reserve(groups.edges.size());
    for (const std::size_t e : groups.edges) {
      const StageEdge& edge = graph_.edges[e];
      PartHop hop;
      hop.edge = static_cast<std::int32_t>(e);
      hop.target = backward ? edge.source : edge.target;
      const GraphStage& source = graph_.stages[at(backward ? edge.target : edge.source)];
      const GraphStage& target = graph_.stages[at(hop.target)];
      const Stage& state = stages_[at(hop.target)];
      hop.device = target.device;
      hop.inputs = backward ? state.backward_inputs : state.forward_inputs;
      if (source.device != target.device) {
        const auto link = static_cast<std::int32_t>(links_.size());
        hop.link = links_.try_emplace({source.device, target.device}, link).first->second;
        hop.time_s = time_s[e];
      }
      const bool whole = form.whole_micro_batches || source.micro_batch < target.micro_batch;
      hop.part_samples = whole ? source.micro_batch : target.micro_batch;
      hop.target_samples = target.micro_batch;
      hop.split = source.micro_batch / hop.part_samples;
      result.hops.push_back(hop);
      for (std::size_t k = 0; k < state.micro_batches; ++k) {
        for_each_sharing(static_cast<std::int64_t>(k), hop.target_samples, hop.part_samples,
                         [&](std::int64_t) { ++inputs_[hop.inputs + k].missing; });
      }
    }
    result.first = std::move(groups.first);
  }

  void advance(std::size_t d) {
    Device& device = devices_[d];
    for (std::size_t& next = device.progress.done; next < device.order.size(); ++next) {
      const Work& work = device.order[next];
      const Stage& stage = stages_[at(work.stage)];
      double ready_s = 0;
      if (work.kind == WorkKind::forward || is_gradient(work.kind)) {
        const bool forward = work.kind == WorkKind::forward;
        const Inputs& inputs =
            inputs_[(forward ? stage.forward_inputs : stage.backward_inputs) + at(work.index)];
        if (inputs.missing > 0) return;
        ready_s = inputs.ready_s;
      } else if (work.kind == WorkKind::optimizer) {
        ready_s = stage.reduced_s;
      }
      run_work(d, work, ready_s);
    }
  }

  void run_work(std::size_t d, const Work& work, double ready_s) {
    DeviceProgress& device = devices_[d].progress;
    Stage& stage = stages_[at(work.stage)];
    const double duration_s = stage.duration_s[static_cast<std::size_t>(work.kind)];
    if (work.kind == WorkKind::reduce_gradients) {
      const double start_s = std::max(device.free_s, device.reduced_s);
      device.reduced_s = stage.reduced_s = start_s + duration_s;
      if (observer_ != nullptr) observer_->worked(d, work, start_s, stage.reduced_s);
      return;
    }
    const double start_s = std::max(device.free_s, ready_s);
    double end_s = start_s + duration_s;
    if (work.kind == WorkKind::forward) {
      if (stage.parameters_s > end_s) {
        device.parameter_wait_s += stage.parameters_s - end_s;
        end_s = stage.parameters_s;
      }
      stage.parameters_s = 0;
      --inputs_[stage.backward_inputs + at(work.index)].missing;
    }
    if (device.done == 0) device.start_s = start_s;
    device.free_s = end_s;
    if (observer_ != nullptr) observer_->worked(d, work, start_s, end_s);
    if (work.kind == WorkKind::forward) {
      send(forward_hops_, work, end_s);
    } else if (is_gradient(work.kind)) {
      send(backward_hops_, work, end_s);
    }
  }

  void send(const PartHops& hops, const Work& work, double end_s) {
    const bool backward = work.kind != WorkKind::forward;
    for (const PartHop& hop : hops.from(work.stage)) {
      for (std::int64_t i = 0; i < hop.split; ++i) {
        const std::int64_t part = work.index * hop.split + i;
        double arrived_s = end_s;
        if (hop.link >= 0) {
          double& free_s = link_free_[at(hop.link)];
          const double sent_s = std::max(free_s, end_s);
          arrived_s = free_s = sent_s + hop.time_s;
          if (observer_ != nullptr) {
            observer_->sent({sent_s, arrived_s, hop.edge, backward, part});
          }
        }
        for_each_sharing(part, hop.part_samples, hop.target_samples,
                         [&](std::int64_t k) { arrive(hop, backward, k, arrived_s); });
      }
    }
  }

  void arrive(const PartHop& hop, bool backward, std::int64_t micro_batch, double time_s) {
    Inputs& inputs = inputs_[hop.inputs + at(micro_batch)];
    inputs.ready_s = std::max(inputs.ready_s, time_s);
    if (--inputs.missing > 0) return;
    const Device& device = devices_[at(hop.device)];
    if (device.progress.done >= device.order.size()) return;
    const Work& next = device.order[device.progress.done];
    if (next.stage == hop.target && next.index == micro_batch &&
        (backward ? is_gradient(next.kind) : next.kind == WorkKind::forward)) {
      awake_.push_back(at(hop.device));
    }
  }

  const StageGraph& graph_;
  RunObserver* const observer_;
  std::vector<Stage> stages_;
  std::vector<Inputs> inputs_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> links_;  ///< By devices.
  PartHops forward_hops_, backward_hops_;
  std::vector<double> link_free_;
  std::vector<Device> devices_;
  std::vector<std::size_t> awake_;
};

}  // namespace

std::vector<DeviceProgress> run_order(const TimedGraph& timed, const WorkOrder& order,
                                      const RunSettings& form) {
  assert(order.devices.size() == device_count(timed.graph));
  return OrderRun(timed, order, form).run();
}

void throw_stuck(std::int64_t stage, const Work& work, const std::string& detail) {
  throw Error(
      "stage " + std::to_string(stage) + " waits for ever before " + describe(work) + detail,
      "the order of passes contradicts the flow of data between the stages");
}

const Work* stuck_at(const WorkOrder& order, std::span<const DeviceProgress> run) {
  for (std::size_t d = 0; d < run.size(); ++d) {
    if (run[d].done < order.devices[d].size()) return &order.devices[d][run[d].done];
  }
  return nullptr;
}

}  // namespace braid
