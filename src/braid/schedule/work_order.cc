#include "braid/schedule/work_order.h"

#include <cassert>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

[[noreturn]] void fail_order(const Work& work, const std::string& what) {
  throw Error(
      "stage " + std::to_string(std::int64_t{1} + work.stage) + ": " + describe(work) + " " + what,
      "the schedule is none of this pipeline's");
}

/// What a stage has done so far.
struct StageTurns {
  std::int64_t micro_batches = 0, rounds = 1;
  std::int64_t forwards = 0, backwards = 0, weights = 0;  ///< Weights: second halves.
  std::int64_t reductions = 0, optimizers = 0;
  bool halves = false;

  /// Throws unless `work` can be next; counts it.
  void take(const Work& work) {
    const auto in_turn = [&](std::int64_t& done, std::int64_t count) {
      if (work.index != done || done >= count) fail_order(work, "is out of turn");
      ++done;
    };
    switch (work.kind) {
      case WorkKind::forward:
        return in_turn(forwards, micro_batches);
      case WorkKind::backward:
      case WorkKind::input_gradient:
        if (backwards == 0) halves = work.kind == WorkKind::input_gradient;
        in_turn(backwards, micro_batches);
        if (work.index >= forwards) fail_order(work, "comes before its forward pass");
        if (halves != (work.kind == WorkKind::input_gradient)) {
          fail_order(work, "is not of the form of those before");
        }
        return;
      case WorkKind::weight_gradient:
        in_turn(weights, micro_batches);
        if (!halves || work.index >= backwards)
          fail_order(work, "comes before its input gradients");
        return;
      case WorkKind::reduce_gradients:
      case WorkKind::optimizer: {
        const bool reduction = work.kind == WorkKind::reduce_gradients;
        in_turn(reduction ? reductions : optimizers, rounds);
        const std::int64_t done = halves ? weights : backwards;
        if (done < (work.index + 1) * (micro_batches / rounds)) {
          fail_order(work, "comes before its gradients");
        }
        if (reduction && optimizers > work.index) fail_order(work, "comes after the optimizer");
        return;
      }
    }
  }

  void check_complete(std::int32_t stage) const {
    const auto all = [&](WorkKind kind, std::int64_t done) {
      if (done < micro_batches) fail_order({kind, stage, done}, "is missing");
    };
    all(WorkKind::forward, forwards);
    all(WorkKind::backward, backwards);
    if (halves) all(WorkKind::weight_gradient, weights);
  }
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

void check_turns(const StageGraph& graph, const WorkOrder& order) {
  const std::size_t devices = device_count(graph);
  if (order.devices.size() != devices) {
    throw Error("the schedule is for " + std::to_string(order.devices.size()) +
                " devices, the pipeline for " + std::to_string(devices));
  }
  std::vector<StageTurns> stages(graph.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].micro_batches = graph.micro_batches(s);
    stages[s].rounds = graph.rounds;
  }
  for (std::size_t d = 0; d < devices; ++d) {
    for (const Work& work : order.devices[d]) {
      if (work.stage < 0 || at(work.stage) >= stages.size()) {
        throw Error("stage " + std::to_string(std::int64_t{1} + work.stage) +
                    " of the schedule does not exist");
      }
      if (at(graph.stages[at(work.stage)].device) != d) fail_order(work, "is on another's device");
      stages[at(work.stage)].take(work);
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].check_complete(static_cast<std::int32_t>(s));
  }
}

}  // namespace braid
