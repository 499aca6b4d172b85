#include "braid/plan/gradient_placeholders.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"
#include "braid/profile/shard.h"

namespace braid {
namespace {

constexpr std::size_t kMostShapes = 64;

}  // namespace

std::vector<WeightShapes::Shape> WeightShapes::shapes_of(const Operator& op) {
  if (const auto* gemm = std::get_if<MatMul>(&op.kind)) {
    if (gemm->weight) return {{{gemm->k, gemm->n}, op.split}};
  }
  if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
    return {{{experts->hidden, (experts->matrices - 1) * experts->inner}, op.split},
            {{experts->inner, experts->hidden}, op.split}};
  }
  return {};
}

WeightShapes::WeightShapes(const Graph& graph) {
  std::vector<bool> seen;
  for (const Layer& layer : graph.layers) {
    const std::size_t kind = at(layer.kind);
    if (kind >= seen.size()) {
      seen.resize(kind + 1, false);
      of_kind_.resize(kind + 1, 0);
    }
    if (seen[kind]) continue;
    seen[kind] = true;
    for (OperatorId id = layer.first; id < layer.last; ++id) {
      for (const Shape& shape : shapes_of(graph.operators[at(id)])) {
        const auto found = std::find(shapes_.begin(), shapes_.end(), shape);
        const auto number = static_cast<std::size_t>(found - shapes_.begin());
        if (found == shapes_.end()) shapes_.push_back(shape);
        of_kind_[kind] |= std::uint64_t{1} << std::min(number, kMostShapes - 1);
      }
    }
  }
}

std::vector<double> WeightShapes::bytes(const Execution& how, Dtype weight) const {
  Execution one_expert = how;
  one_expert.ep = 1;
  std::vector<double> bytes(std::min(shapes_.size(), kMostShapes), 0);
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const Shape& shape = shapes_[i];
    bytes[std::min(i, kMostShapes - 1)] +=
        static_cast<double>(shape.size[0]) * static_cast<double>(shape.size[1]) *
        shard_of(shape.split, one_expert, 1).weight * bytes_per_element(weight);
  }
  return bytes;
}

void add_gradient_placeholders(const Graph& graph, Plan& plan) {
  const WeightShapes shapes(graph);
  for (Stage& stage : plan.stages) {
    std::uint64_t seen = 0;
    for (Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const std::size_t kind = at(plan.profile.layers[at(chunk.layers[i])].kind);
        const std::uint64_t added = shapes.of_kind()[kind] & ~seen;
        if (added == 0) continue;
        seen |= added;
        std::vector<Option>& options = plan.profile.kinds[kind];
        Option option = options[at(chunk.options[i])];
        const double bytes =
            placeholder_bytes(added, shapes.bytes(option.how, plan.precision.weight));
        option.cost.fixed_bytes = std::max(0.0, option.cost.fixed_bytes) + bytes;
        // Stages that are alike share the option.
        const auto same = std::find(options.begin(), options.end(), option);
        chunk.options[i] = static_cast<std::int32_t>(same - options.begin());
        if (same == options.end()) options.push_back(std::move(option));
      }
    }
  }
}

}  // namespace braid
