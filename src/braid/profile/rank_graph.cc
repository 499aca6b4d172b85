#include "braid/profile/rank_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "braid/base/rounding.h"
#include "braid/profile/shard.h"
#include "braid/profile/tensor_comm.h"

namespace braid {
namespace {

/// `share` of a size, at least one and rounded up but for what is only rounding.
std::int64_t part_of(std::int64_t size, double share) {
  const double part = std::ceil(static_cast<double>(size) * share * kBelowRounding);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(part));
}

/// Gives an operator's kind the sizes of one device's share.
class KindShare {
 public:
  KindShare(const Operator& op, const Shard& shard, const Execution& how, std::int64_t samples)
      : op_(op), shard_(shard), how_(how), samples_(samples) {}

  void operator()(MatMul& kind) const {
    const bool heads = !kind.weight && op_.split == Split::heads;
    if (kind.weight) {
      kind.m = part_of(kind.m, shard_.tokens);
    } else {
      kind.batch = part_of(kind.batch, shard_.tokens * (heads ? shard_.output : 1));
    }
    if (heads) return;
    kind.n = part_of(kind.n, shard_.output);
    kind.k = part_of(kind.k, shard_.input);
  }
  void operator()(Attention& kind) const {
    kind.samples = part_of(kind.samples,
                           static_cast<double>(how_.micro_batch) / static_cast<double>(samples_));
    kind.q_len = part_of(kind.q_len, 1.0 / how_.cp);
    kind.heads = part_of(kind.heads, shard_.output);
    kind.kv_heads = part_of(kind.kv_heads, shard_.output);
  }
  void operator()(Convolution& kind) const {
    const bool groups = shard_.input < 1 && shard_.output < 1;
    kind.samples = part_of(kind.samples, shard_.tokens);
    kind.out_channels = part_of(kind.out_channels, shard_.output);
    kind.in_channels = part_of(kind.in_channels, shard_.input);
    if (groups) kind.groups = part_of(kind.groups, shard_.output);
  }
  void operator()(Recurrent& kind) const {
    kind.rows = part_of(kind.rows, shard_.tokens);
    kind.n = part_of(kind.n, shard_.output);
  }
  void operator()(Normalization& kind) const {
    kind.elements = part_of(kind.elements, shard_.tokens * shard_.output);
  }
  void operator()(Softmax& kind) const {
    kind.elements = part_of(kind.elements, shard_.tokens * shard_.output);
  }
  void operator()(Elementwise& kind) const {
    kind.elements = part_of(kind.elements, shard_.tokens * shard_.output);
  }
  void operator()(Reduction& kind) const {
    kind.elements = part_of(kind.elements, shard_.tokens * shard_.input);
  }
  void operator()(Embedding& kind) const {
    kind.lookups = part_of(kind.lookups, shard_.tokens);
    if (op_.split == Split::vocab) {
      kind.rows = part_of(kind.rows, shard_.weight);
    } else {
      kind.width = part_of(kind.width, shard_.output);
    }
  }
  void operator()(MoeRouter& kind) const { kind.tokens = part_of(kind.tokens, shard_.tokens); }
  void operator()(MoeExperts& kind) const {
    // A device's experts get as many tokens as it holds itself: balanced routing.
    const bool whole = how_.whole_experts;
    kind.tokens = part_of(kind.tokens, shard_.tokens / (whole ? how_.tp : 1));
    kind.experts = part_of(kind.experts, 1.0 / how_.ep);
    kind.inner = part_of(kind.inner, 1.0 / (whole ? 1 : how_.tp));
  }
  void operator()(Loss& kind) const {
    kind.rows = part_of(kind.rows, shard_.tokens);
    kind.width = part_of(kind.width, shard_.output);
  }
  void operator()(DataMovement& /*kind*/) const {}
  void operator()(OptimizerStep& /*kind*/) const {}

 private:
  const Operator& op_;
  const Shard& shard_;
  const Execution& how_;
  std::int64_t samples_;
};

/// What one device has of a tensor: rows of the micro-batch, and features where its writer leaves
/// them sharded.
void take_share(Tensor& tensor, const Operator* writer, const Execution& how,
                std::int64_t samples) {
  if (tensor.dims.empty()) return;
  const Shard shard = shard_of(writer == nullptr ? Split::sequence : writer->split, how, samples);
  tensor.dims.front() = part_of(tensor.dims.front(), shard.tokens);
  if (writer == nullptr || !leaves_sharded(*writer)) return;
  tensor.dims.back() = part_of(tensor.dims.back(), shard.output);
}

}  // namespace

Graph rank_layer(const Graph& graph, LayerId layer, const Execution& how,
                 std::span<const TensorId> leaving, const std::vector<bool>& take) {
  const Layer& range = graph.layers[static_cast<std::size_t>(layer)];
  Graph rank;
  rank.name = graph.name;
  rank.samples = how.micro_batch;
  rank.seq_len = graph.seq_len;
  rank.operators.push_back({"inputs", DataMovement{true}, {}, {}});
  std::map<TensorId, TensorId> number_of;
  const auto number = [&](TensorId old, bool written) {
    const auto [place, added] =
        number_of.try_emplace(old, static_cast<TensorId>(rank.tensors.size()));
    if (added) {
      Tensor& tensor = rank.tensors.emplace_back(graph.tensors[static_cast<std::size_t>(old)]);
      if (!tensor.is_parameter) {
        const Operator* writer = tensor.producer < 0
                                     ? nullptr
                                     : &graph.operators[static_cast<std::size_t>(tensor.producer)];
        take_share(tensor, writer, how, graph.samples);
      }
      const bool comes = !written && tensor.producer >= 0;
      tensor.producer = written ? static_cast<OperatorId>(rank.operators.size()) : comes ? 0 : -1;
      if (comes) {
        rank.operators.front().outputs.push_back(place->second);
      } else if (!written && !tensor.is_parameter) {
        rank.inputs.push_back(place->second);
      }
    }
    return place->second;
  };
  for (OperatorId id = range.first; id < range.last; ++id) {
    if (!take.empty() && !take[static_cast<std::size_t>(id - range.first)]) continue;
    Operator op = graph.operators[static_cast<std::size_t>(id)];
    const Shard shard = shard_of(op.split, how, graph.samples);
    std::visit(KindShare(op, shard, how, graph.samples), op.kind);
    for (TensorId& tensor : op.inputs) tensor = number(tensor, false);
    for (TensorId& tensor : op.outputs) tensor = number(tensor, true);
    op.layer = kRankLayer;
    rank.operators.push_back(std::move(op));
  }
  for (const TensorId tensor : leaving) {
    const auto place = number_of.find(tensor);
    if (place == number_of.end()) continue;
    if (rank.tensors[static_cast<std::size_t>(place->second)].producer <= 0) continue;
    rank.outputs.push_back(place->second);
  }
  rank.layers.push_back({"inputs", 0, 1, 0});
  rank.layers.push_back({range.name, 1, static_cast<OperatorId>(rank.operators.size()), 1});
  return rank;
}

Graph recomputed_rank_layer(const Graph& graph, LayerId layer, const Execution& how,
                            std::span<const OperatorWork> works) {
  std::vector<bool> take;
  take.reserve(works.size());
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < works.size(); ++i) {
    take.push_back(works[i].is_recomputed);
    if (!works[i].is_recomputed) continue;
    const Operator& op = graph.operators[at(graph.layers[at(layer)].first) + i];
    outputs.insert(outputs.end(), op.outputs.begin(), op.outputs.end());
  }
  return rank_layer(graph, layer, how, outputs, take);
}

}  // namespace braid
