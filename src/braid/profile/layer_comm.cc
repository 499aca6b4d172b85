#include "braid/profile/layer_comm.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "braid/graph/tensor_size.h"
#include "braid/system/dispatch.h"

namespace braid {
namespace {

/// Keys and values of a device's heads, for the whole graph's rows.
double kv_elements(const Attention& attention, Split split, const Execution& how) {
  const int ranks = split == Split::heads ? how.tp : 1;
  const double kv_heads = std::max(1.0, static_cast<double>(attention.kv_heads) / ranks);
  return static_cast<double>(attention.samples) * static_cast<double>(attention.kv_len) * kv_heads *
         static_cast<double>(attention.qk_dim + attention.v_dim);
}

/// Tokens that a device dispatches, for the whole graph's rows.
double held_elements(const MoeExperts& experts, const Execution& how) {
  return static_cast<double>(experts.tokens) * static_cast<double>(experts.hidden) /
         (how.sequence_parallel ? how.tp : 1);
}

/// What a device sends with one operator besides the tensors that it reads, for so many rows.
void add_operator_sent(const Operator& op, double bytes_per_row_element, const Execution& how,
                       LayerSent& sent) {
  const auto* attention = std::get_if<Attention>(&op.kind);
  if (how.cp > 1 && attention != nullptr) {
    const double block = kv_elements(*attention, op.split, how) * bytes_per_row_element;
    const double around = sent_bytes(Collective::all_gather, block * how.cp, how.cp);
    sent.forward += around;
    sent.backward += 2 * around;
  }
  const auto* experts = std::get_if<MoeExperts>(&op.kind);
  if (how.ep > 1 && experts != nullptr) {
    const double reached =
        experts->padded
            ? static_cast<double>(experts->top_k)
            : units_reached(how.ep, static_cast<double>(experts->experts), experts->top_k);
    const double there =
        sent_bytes(Collective::all_to_all,
                   reached * held_elements(*experts, how) * bytes_per_row_element, how.ep);
    sent.forward += 2 * there;
    sent.backward += 2 * there;
  }
}

}  // namespace

std::vector<TensorUse> tensor_uses(const Graph& graph, const Layer& layer,
                                   std::span<const OperatorTimes> times,
                                   std::span<const TensorId> made_whole, bool sequence_parallel) {
  std::vector<TensorUse> uses;
  const auto use_of = [&](TensorId id, OperatorId reader) -> TensorUse& {
    const auto known = std::find_if(uses.begin(), uses.end(),
                                    [&](const TensorUse& use) { return use.tensor == id; });
    if (known != uses.end()) return *known;
    const OperatorId producer = graph.tensors[static_cast<std::size_t>(id)].producer;
    const bool sharded = leaves_sharded(graph.operators[static_cast<std::size_t>(producer)]);
    return uses.emplace_back(TensorUse{id, reader, sharded, {}});
  };
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    for (const TensorId input : op.inputs) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
      if (tensor.is_parameter || tensor.producer < 0) continue;
      TensorUse& use = use_of(input, id);
      const TensorNeeds needs = needs_of(op, input, use.sharded, sequence_parallel);
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
    comm.tp_forward_s += more.forward;
    comm.tp_backward_s += more.backward;
  };
  const double lost_share = system.groups.front().chip.efficiency.overlap_loss;
  const auto hidden_s = [&](double transfer_s, double behind_s) {
    return (1 - lost_share) * std::min(transfer_s, behind_s);
  };
  auto use = uses.begin();
  for (OperatorId id = layer.first; id <= layer.last; ++id) {
    for (; how.tp > 1 && use != uses.end() && use->first_reader == id; ++use) {
      const TensorComm whole = tensor_comm(bytes_of_rows(use->tensor), use->sharded, use->needs,
                                           how.sequence_parallel, groups.tp, system);
      add(whole);
      comm.tp_backward_s +=
          whole.gathered_again - hidden_s(whole.gathered_again, use->input_gradient_s);
      if (use->needs.whole) comm.tp_hidden_s += hidden_s(whole.backward, use->weight_gradient_s);
    }
    if (id == layer.last) break;
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    add(operator_comm(op, op.outputs.empty() ? 0 : bytes_of_rows(op.outputs[0]), rows, how,
                      groups.tp, system));
    if (how.cp > 1) {
      if (const auto* attention = std::get_if<Attention>(&op.kind)) {
        comm.cp_forward_bytes += kv_elements(*attention, op.split, how) * rows * width;
      }
    }
    if (how.ep > 1) {
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
        const double held = held_elements(*experts, how) * rows * width;
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

LayerSent layer_sent(const LayerInput& input, const Execution& how, const Precision& precision) {
  const Graph& graph = input.graph;
  const Layer& layer = graph.layers[static_cast<std::size_t>(input.layer)];
  const double width = bytes_per_element(precision.activation);
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  const auto bytes_of_rows = [&](TensorId id) {
    return elements_of(graph.tensors[static_cast<std::size_t>(id)]) * rows * width;
  };
  LayerSent sent;
  const auto add = [&](const TensorComm& more) {
    sent.forward += more.forward;
    sent.backward += more.backward + more.gathered_again;
  };
  if (how.tp > 1) {
    const std::vector<OperatorTimes> untimed(static_cast<std::size_t>(layer.last - layer.first));
    for (const TensorUse& use :
         tensor_uses(graph, layer, untimed, input.made_whole, how.sequence_parallel)) {
      add(tensor_sent(bytes_of_rows(use.tensor), use.sharded, use.needs, how.sequence_parallel,
                      how.tp));
    }
  }
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    add(operator_sent(op, op.outputs.empty() ? 0 : bytes_of_rows(op.outputs[0]), rows, how));
    add_operator_sent(op, rows * width, how, sent);
  }
  return sent;
}

}  // namespace braid
