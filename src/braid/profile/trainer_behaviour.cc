#include "braid/profile/trainer_behaviour.h"

#include <algorithm>
#include <variant>

#include "braid/base/infinity.h"
#include "braid/graph/predicts_mtp.h"
#include "braid/graph/repeated_layers.h"

namespace braid {
namespace {

void use_plain_attention(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* attention = std::get_if<Attention>(&op.kind)) attention->flash = false;
  }
}

/// Cross entropy reads the logits and leaves their gradient in their place, as a pointwise operator
/// does, in place of a kernel for each step and a copy in f32 (Transformer Engine's
/// common/triton/cross_entropy.py).
void fuse_loss(Graph& graph) {
  constexpr double kFlopsPerLogit = 5;
  for (Operator& op : graph.operators) {
    const auto* loss = std::get_if<Loss>(&op.kind);
    if (loss == nullptr) continue;
    op.kind = Elementwise{loss->rows * loss->width, kFlopsPerLogit, Elementwise::Keeps::inputs};
    if (op.split == Split::vocab) op.split = Split::features;
  }
}

void fuse_experts(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* experts = std::get_if<MoeExperts>(&op.kind)) {
      experts->biased = experts->clamped = false;
    }
  }
}

void pad_experts(Graph& graph) {
  for (Operator& op : graph.operators) {
    if (auto* experts = std::get_if<MoeExperts>(&op.kind)) experts->padded = true;
  }
}

/// Makes the last two layers one where the first of them is MTP.
void join_predictions(Graph& graph) {
  if (!predicts_mtp(graph)) return;
  const Layer head = graph.layers.back();
  graph.layers.pop_back();
  Layer& joined = graph.layers.back();
  joined.name += " and " + head.name;
  joined.last = head.last;
  const auto id = static_cast<LayerId>(graph.layers.size() - 1);
  for (OperatorId op = head.first; op < head.last; ++op) {
    graph.operators[static_cast<std::size_t>(op)].layer = id;
  }
  find_repeated_layers(graph);
}

/// Dispatch and its way back go on beside the other pass of another micro-batch: what does not hide
/// behind the layer's kernels shows, and of what does the share that it takes from them.
void hide_dispatch(double overlap_loss, LayerCost& cost) {
  const double travel_s = cost.forward.ep_comm_s + cost.backward_input.ep_comm_s;
  if (travel_s <= 0) return;
  const double kernels_s = cost.forward.compute_s + cost.recompute.compute_s +
                           cost.backward_input.compute_s + cost.backward_weight.compute_s;
  const double hidden_s = std::min(travel_s, kernels_s);
  const double shown = (travel_s - hidden_s * (1 - overlap_loss)) / travel_s;
  cost.forward.ep_comm_s *= shown;
  cost.backward_input.ep_comm_s *= shown;
}

}  // namespace

const std::vector<BehaviourFlag>& behaviour_flags() {
  static const std::vector<BehaviourFlag> flags = {
      {"flash_attention", &TrainerBehaviour::flash_attention,
       "attention's scores are never written to memory"},
      {"captured_graphs", &TrainerBehaviour::captured_graphs,
       "iterations are replayed graphs: the host issues no kernels"},
      {"fused_loss", &TrainerBehaviour::fused_loss, "cross entropy is one kernel"},
      {"fused_experts", &TrainerBehaviour::fused_experts,
       "experts' GEMMs take biases and clamps along"},
      {"padded_experts", &TrainerBehaviour::padded_experts,
       "experts have capacity for the average, tokens beyond it are dropped"},
      {"selective_attention", &TrainerBehaviour::selective_attention,
       "selective recomputation repeats attention's core"},
      {"selective_attention_output", &TrainerBehaviour::selective_attention_output,
       "selective recomputation does not keep the output of attention's core"},
      {"selective_norms", &TrainerBehaviour::selective_norms,
       "selective recomputation repeats norms, but those before experts"},
      {"selective_expert_norms", &TrainerBehaviour::selective_expert_norms,
       "selective recomputation repeats norms before experts"},
      {"selective_activations", &TrainerBehaviour::selective_activations,
       "selective recomputation repeats pointwise functions"},
      {"predictions_with_head", &TrainerBehaviour::predictions_with_head,
       "MTP modules and the head are one layer"},
      {"overlapped_tensor_parallel", &TrainerBehaviour::overlapped_tensor_parallel,
       "input gradients are summed over tensor-parallel ranks behind the weights' gradients"},
      {"overlapped_dispatch", &TrainerBehaviour::overlapped_dispatch,
       "tokens travel to experts and back behind another micro-batch's kernels"},
      {"fused_accumulation", &TrainerBehaviour::fused_accumulation,
       "the GEMM that makes a weight's gradient adds it to those of earlier micro-batches"},
      {"gradient_placeholders", &TrainerBehaviour::gradient_placeholders,
       "an empty tensor of each weight's shape, handed on as its gradient, lies in memory"},
      {"blocking_sends", &TrainerBehaviour::blocking_sends,
       "without interleaving a stage waits for what it sends"},
      {"overlapped_gradients", &TrainerBehaviour::overlapped_gradients,
       "gradients are synchronised behind the last backward pass"},
      {"half_gradients", &TrainerBehaviour::half_gradients,
       "training in fp16 keeps and reduces gradients in fp16"},
      {"narrow_tied_gradients", &TrainerBehaviour::narrow_tied_gradients,
       "gradients of parameters that several stages hold are summed in the weights' format"},
      {"node_replicas", &TrainerBehaviour::node_replicas,
       "fully sharded state is sharded over a node's devices, and each node holds all of it"},
  };
  return flags;
}

void adapt_precision(const TrainerBehaviour& does, Precision& precision) {
  if (does.half_gradients && precision.weight == Dtype::f16) precision.gradient = Dtype::f16;
  if (does.narrow_tied_gradients) precision.shared_gradient = precision.weight;
}

void adapt_graph(const TrainerBehaviour& does, Graph& graph) {
  if (!does.flash_attention) use_plain_attention(graph);
  if (does.fused_loss) fuse_loss(graph);
  if (does.fused_experts) fuse_experts(graph);
  if (does.padded_experts) pad_experts(graph);
  graph.selective = {.attention = does.selective_attention,
                     .attention_output = does.selective_attention_output,
                     .norms = does.selective_norms,
                     .expert_norms = does.selective_expert_norms,
                     .activations = does.selective_activations};
  if (does.predictions_with_head) join_predictions(graph);
}

System adapted_system(const TrainerBehaviour& does, const System& system) {
  System adapted = system;
  for (DeviceGroup& group : adapted.groups) {
    group.chip.efficiency.attention_peak_fraction *= does.attention_rate;
    if (does.captured_graphs) group.chip.efficiency.host_operator_s = 0;
  }
  return adapted;
}

double accumulation_s_per_parameter(std::int64_t micro_batches, const Precision& precision,
                                    const System& system) {
  if (micro_batches <= 1) return 0;
  double bytes_per_s = kInfinity;
  for (const DeviceGroup& group : system.groups) {
    bytes_per_s = std::min(
        bytes_per_s, group.chip.memory.bytes_per_s * group.chip.efficiency.memory_peak_fraction);
  }
  const double bytes =
      bytes_per_element(precision.weight) + 2 * bytes_per_element(precision.gradient);
  return bytes * (1 - 1 / static_cast<double>(micro_batches)) / bytes_per_s;
}

void adapt_cost(const TrainerBehaviour& does, double overlap_loss, double accumulation_s,
                LayerCost& cost) {
  cost.backward_weight.compute_s +=
      (cost.dense_parameters + cost.expert_parameters) * accumulation_s;
  if (does.overlapped_dispatch) hide_dispatch(overlap_loss, cost);
  if (!does.overlapped_tensor_parallel) {
    cost.backward_input.tp_comm_s += cost.hidden_tp_s;
    cost.hidden_tp_s = 0;
  }
}

}  // namespace braid
