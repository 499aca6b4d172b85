#include "braid/profile/layer_comm.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "braid/graph/tensor_size.h"
#include "braid/system/dispatch.h"

namespace braid {

std::vector<TensorUse> tensor_uses(const Graph& graph, const Layer& layer,
                                   std::span<const OperatorTimes> times,
                                   std::span<const TensorId> made_whole, bool sequence_parallel) {
  std::vector<TensorUse> uses;
  const auto use_of = [&](TensorId id, OperatorId reader) -> TensorUse& {
    const auto known = std::find_if(uses.begin(), uses.end(),
                                    [&](const TensorUse& use) { return use.tensor == id; });
    if (known != uses.end()) return *known;
    const OperatorId producer = graph.tensors[static_cast<std::size_t>(id)].producer;
    const bool divided = leaves_divided(graph.operators[static_cast<std::size_t>(producer)]);
    return uses.emplace_back(TensorUse{id, reader, divided, {}});
  };
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    for (const TensorId input : op.inputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
      if (tensor.is_parameter || tensor.producer < 0) continue;
      TensorUse& use = use_of(input, id);
      const TensorNeeds needs = needs_of(op, input, use.divided, sequence_parallel);
      use.needs |= needs;
      // Of experts' GEMMs both gradients are made before the tokens' travel back.
      if (!needs.whole || op.split == Split::expert) continue;
      const OperatorTimes& own = times[static_cast<std::size_t>(id - layer.first)];
      use.input_gradient_s += own.backward_input_s;
      use.weight_gradient_s += own.backward_weight_s;
    }
  }
  for (const TensorId id : made_whole) use_of(id, layer.last).needs.as_is = true;
  return uses;
}

LayerComm layer_comm(const LayerInput& input, std::span<const TensorUse> uses, const Execution& how,
                     const LayerPlace& place) {
  const Graph& graph = input.graph;
  const Layer& layer = graph.layers[static_cast<std::size_t>(input.layer)];
  const LayerGroups& groups = place.groups;
  const System& system = place.system;
  LayerComm comm;
  const double width = bytes_per_element(place.precision.activation);
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  const auto bytes_of_rows = [&](TensorId id) {
    return elements_of(graph.tensors[static_cast<std::size_t>(id)]) * rows * width;
  };
  const auto add = [&](const TensorComm& more) {
    comm.tp_forward_s += more.forward_s;
    comm.tp_backward_s += more.backward_s;
  };
  const double lost_share = system.groups.front().chip.efficiency.overlap_loss;
  const auto hidden_s = [&](double transfer_s, double behind_s) {
    return (1 - lost_share) * std::min(transfer_s, behind_s);
  };
  auto use = uses.begin();
  for (OperatorId id = layer.first; id <= layer.last; ++id) {
    for (; how.tp > 1 && use != uses.end() && use->first_reader == id; ++use) {
      const TensorComm whole = tensor_comm(bytes_of_rows(use->tensor), use->divided, use->needs,
                                           how.sequence_parallel, groups.tp, system);
      add(whole);
      comm.tp_backward_s +=
          whole.gathered_again_s - hidden_s(whole.gathered_again_s, use->input_gradient_s);
      if (use->needs.whole) comm.tp_hidden_s += hidden_s(whole.backward_s, use->weight_gradient_s);
    }
    if (id == layer.last) break;
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    add(operator_comm(op, op.outputs.empty() ? 0 : bytes_of_rows(op.outputs[0]), rows, how,
                      groups.tp, system));
    if (how.cp > 1) {
      if (const auto* attention = std::get_if<Attention>(&op.kind)) {
        const int ranks = op.split == Split::heads ? how.tp : 1;
        const double kv_heads = std::max(1.0, static_cast<double>(attention->kv_heads) / ranks);
        comm.cp_forward_bytes +=
            static_cast<double>(attention->samples) * static_cast<double>(attention->kv_len) *
            kv_heads * static_cast<double>(attention->qk_dim + attention->v_dim) * rows * width;
      }
    }
    if (how.ep > 1) {
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
        const double held = static_cast<double>(experts->tokens) *
                            static_cast<double>(experts->hidden) * rows * width /
                            (how.sequence_parallel ? how.tp : 1);
        // Of one token for each of its experts, every one goes to one of them.
        const double copies = experts->padded ? static_cast<double>(experts->top_k) : 1;
        const std::int64_t chosen = experts->padded ? 1 : experts->top_k;
        const double pair_s =
            2 * dispatch_time(copies * held, experts->experts, chosen, groups.ep, system).time_s;
        comm.ep_forward_s += pair_s;
        comm.ep_backward_s += pair_s;
      }
    }
  }
  return comm;
}

}  // namespace braid
