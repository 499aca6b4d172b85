#include "braid/profile/layer_comm.h"

#include <algorithm>
#include <vector>

#include "braid/profile/shard.h"

namespace braid {
namespace {

double elements(const Tensor& tensor) {
  double count = 1;
  for (const std::int64_t dim : tensor.dims) count *= static_cast<double>(dim);
  return count;
}

}  // namespace

LayerComm layer_comm(const Graph& graph, const Layer& layer, const Execution& how,
                     const Precision& precision, const LayerGroups& groups, const System& system) {
  LayerComm comm;
  const double width = bytes_per_element(precision.activation);
  const double rows =
      static_cast<double>(how.micro_batch) / static_cast<double>(graph.samples) / how.cp;
  const auto time_s = [&](Collective collective, double bytes, const GroupSpan& span) {
    return collective_time(collective, bytes, span, system).time_s;
  };
  std::vector<TensorId> entered;  // Tensors already gathered in this layer.
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const TensorId output_id = op.outputs.empty() ? -1 : op.outputs[0];
    const double output_bytes =
        output_id < 0 ? 0
                      : elements(graph.tensors[static_cast<std::size_t>(output_id)]) * rows * width;
    const bool enters = op.split == Split::column || op.split == Split::heads ||
                        (op.split == Split::vocab && std::holds_alternative<MatMul>(op.kind));
    if (how.tp > 1 && enters) {
      for (const TensorId input : op.inputs) {
        const Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
        if (tensor.is_parameter || tensor.producer < 0) continue;
        const Operator& producer = graph.operators[static_cast<std::size_t>(tensor.producer)];
        if (!in_replicated_region(producer.split)) continue;
        if (std::find(entered.begin(), entered.end(), input) != entered.end()) continue;
        entered.push_back(input);
        const double bytes = elements(tensor) * rows * width;
        if (how.sequence_parallel) {
          comm.tp_forward_s += time_s(Collective::all_gather, bytes, groups.tp);
          // The input is gathered again for the weight gradient while the input gradient is
          // computed; only the reduce-scatter of the input gradient shows.
          comm.tp_backward_s += time_s(Collective::reduce_scatter, bytes, groups.tp);
        } else {
          comm.tp_backward_s += time_s(Collective::all_reduce, bytes, groups.tp);
        }
      }
    }
    const bool leaves = op.split == Split::row ||
                        (op.split == Split::vocab && std::holds_alternative<Embedding>(op.kind)) ||
                        (op.split == Split::expert && how.tp > 1);
    if (how.tp > 1 && leaves) {
      if (how.sequence_parallel) {
        comm.tp_forward_s += time_s(Collective::reduce_scatter, output_bytes, groups.tp);
        comm.tp_backward_s += time_s(Collective::all_gather, output_bytes, groups.tp);
      } else {
        comm.tp_forward_s += time_s(Collective::all_reduce, output_bytes, groups.tp);
      }
    }
    if (how.tp > 1 && op.split == Split::vocab) {
      if (const auto* loss = std::get_if<Loss>(&op.kind)) {
        // Maximum, sum and target of each row, one after another.
        const double bytes = 4 * static_cast<double>(loss->rows) * rows;
        comm.tp_forward_s += 3 * time_s(Collective::all_reduce, bytes, groups.tp);
      }
    }
    if (how.cp > 1) {
      if (const auto* attention = std::get_if<Attention>(&op.kind)) {
        const double kv_heads = std::max(1.0, static_cast<double>(attention->kv_heads) / how.tp);
        comm.cp_forward_bytes +=
            static_cast<double>(attention->samples) * static_cast<double>(attention->kv_len) *
            kv_heads * static_cast<double>(attention->qk_dim + attention->v_dim) * rows * width;
      }
    }
    if (how.ep > 1) {
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
        const double sent = static_cast<double>(experts->tokens) *
                            static_cast<double>(experts->top_k) *
                            static_cast<double>(experts->hidden) * rows * width /
                            (how.sequence_parallel ? how.tp : 1);
        const double pair_s = 2 * time_s(Collective::all_to_all, sent, groups.ep);
        comm.ep_forward_s += pair_s;
        comm.ep_backward_s += pair_s;
      }
    }
  }
  return comm;
}

}  // namespace braid
