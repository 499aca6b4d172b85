#include "braid/profile/layer_activity.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/chip/systolic/operator_work.h"
#include "braid/graph/tensor_size.h"
#include "braid/graph/training.h"
#include "braid/profile/core_layer.h"
#include "braid/profile/layer_comm.h"
#include "braid/profile/mapped_layer.h"
#include "braid/profile/rank_graph.h"

namespace braid {
namespace {

/// A pass as it is scheduled.
struct PassActivity {
  double time_s = 0;
  ChipActivity does;
};

ChipActivity activity_of(const OperatorCost& cost, const Accelerator& chip) {
  const double word = word_bytes(chip);
  ChipActivity does;
  does.macs = cost.macs;
  does.vector_operations = cost.vector_operations;
  does.register_bytes = cost.macs * register_bytes_per_mac(chip);
  does.tensor_l2_bytes = cost.l2_words * word;
  does.vector_l2_bytes = cost.vector_l2_words * word;
  does.global_buffer_bytes = cost.global_words * word;
  does.hbm_bytes = cost.hbm_words * word;
  return does;
}

PassActivity pass_activity(const Graph& graph, LayerId layer, const Chip& chip, NestMemo& memo) {
  const CoreLayer core = core_layer(graph, layer, cores_of(chip), memo);
  const CoreSchedule schedule = schedule_cores(core.problem, kLayerScheduleWork).schedule;
  PassActivity pass;
  pass.time_s = schedule.makespan_s;
  for (std::size_t i = 0; i < core.latencies.size(); ++i) {
    const OperatorLatencies& latencies = core.latencies[i];
    pass.does += activity_of(schedule.operators[i].all_cores ? latencies.all : latencies.one,
                             chip.accelerator->chip);
  }
  return pass;
}

bool is_matrix(const Operator& op) {
  return std::holds_alternative<MatMul>(op.kind) || std::holds_alternative<Convolution>(op.kind);
}

/// Words that an operator reads of what a matrix product of its layer makes: these may never leave
/// the chip.
double handed_words(const Graph& graph, const Layer& layer, const Operator& op, double word) {
  double words = 0;
  for (const TensorId id : op.inputs) {
    const Tensor& tensor = graph.tensors[at(id)];
    const OperatorId writer = tensor.producer;
    if (writer < layer.first || writer >= layer.last) continue;
    if (is_matrix(graph.operators[at(writer)])) words += bytes_of(tensor) / word;
  }
  return words;
}

ChipActivity least_operator_activity(const Graph& graph, const Layer& layer, const Operator& op,
                                     const Accelerator& chip) {
  const double word = word_bytes(chip);
  const AcceleratorWork work =
      accelerator_work(graph, op, {.word_bytes = word, .kept_words = kInfinity});
  ChipActivity does;
  double filled = 0, hbm = 0;  // Words into and out of L2, and of HBM.
  for (std::size_t i = 0; i < work.nests.size(); ++i) {
    const auto& [nest, times] = work.nests[i];
    const bool may_hand_over = is_matrix(op) && i + 1 == work.nests.size();
    does.macs += times * nest_macs(nest);
    filled += times * compulsory_words(nest);
    hbm += times *
           compulsory_hbm_words(may_hand_over ? with_on_chip(nest, NestOperand::output) : nest);
  }
  const double vector =
      work.nests.empty() ? std::max(0.0, work.vector.words - handed_words(graph, layer, op, word))
                         : 0;
  does.vector_operations = work.vector.operations;
  does.register_bytes = does.macs * register_bytes_per_mac(chip);
  does.tensor_l2_bytes = filled * word;
  does.vector_l2_bytes = 2 * vector * word;
  does.global_buffer_bytes = (filled + hbm + 2 * vector) * word;
  does.hbm_bytes = (hbm + vector) * word;
  return does;
}

}  // namespace

LayerActivity layer_activity(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                             std::span<const TensorId> leaving, const ActivityOf& of,
                             NestMemo& memo) {
  assert(of.chip.accelerator);
  const Execution& how = of.how;
  const Graph rank = rank_layer(graph, layer, how, leaving);
  const Graph step = training_graph(rank);
  const PassActivity forward = pass_activity(step, kRankLayer, of.chip, memo);
  const LayerSent sent = layer_sent({graph, layer, works}, how, of.precision);
  LayerActivity activity;
  activity.forward = forward.does;
  activity.backward = pass_activity(step, kRankBackwardLayer, of.chip, memo).does;
  if (how.recompute == Recompute::full) {
    activity.forward = pass_activity(rank, kRankLayer, of.chip, memo).does;
    activity.recompute = forward.does;
    activity.recompute.link_bytes = sent.forward;
  } else if (how.recompute == Recompute::selective) {
    const Graph part = recomputed_rank_layer(graph, layer, how, works);
    const PassActivity again = pass_activity(part, kRankLayer, of.chip, memo);
    activity.recompute = again.time_s < forward.time_s ? again.does : forward.does;
  }
  activity.forward.link_bytes = sent.forward;
  activity.backward.link_bytes = sent.backward;
  return activity;
}

ChipActivity least_layer_activity(const Graph& graph, LayerId layer,
                                  std::span<const TensorId> leaving, std::int64_t samples,
                                  const Accelerator& chip) {
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 30;
  Execution whole;
  whole.micro_batch = static_cast<int>(std::min(samples, kMostSamples));
  const Graph step = training_graph(rank_layer(graph, layer, whole, leaving));
  ChipActivity least;
  for (const LayerId pass : {kRankLayer, kRankBackwardLayer}) {
    const Layer& range = step.layers[at(pass)];
    for (OperatorId id = range.first; id < range.last; ++id) {
      least += least_operator_activity(step, range, step.operators[at(id)], chip);
    }
  }
  return least;
}

double least_l2_bytes(double macs, const Accelerator& chip) {
  const double word = word_bytes(chip);
  const auto held =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(chip.register_bytes / word));
  double least = kInfinity;  // Words of a multiplication.
  for (std::int64_t folds = 1; folds <= held; ++folds) {
    const std::int64_t others = held / folds;
    least =
        std::min(least, 1 / (static_cast<double>(chip.tensor.depth) * static_cast<double>(folds)) +
                            1 / (static_cast<double>(chip.tensor.width * others)));
  }
  return macs * least * word;
}

}  // namespace braid
