#include "braid/plan/gradient_placeholders.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "braid/profile/shard.h"

namespace braid {
namespace {

/// Rows and columns of a weight, and which of them tensor parallelism divides.
struct WeightShape {
  std::array<std::int64_t, 2> size = {0, 0};
  Split split = Split::replicated;
  friend bool operator==(const WeightShape&, const WeightShape&) = default;
};

/// Weights of an operator that a product reads, one of each shape.
std::vector<WeightShape> weights_of(const Operator& op) {
  if (const auto* product = std::get_if<MatMul>(&op.kind)) {
    if (product->weight) return {{{product->k, product->n}, op.split}};
  }
  if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
    return {{{experts->hidden, (experts->matrices - 1) * experts->inner}, op.split},
            {{experts->inner, experts->hidden}, op.split}};
  }
  return {};
}

/// Elements of a weight on one device.
double elements_on_device(const WeightShape& weight, const Execution& how) {
  Execution one_expert = how;
  one_expert.ep = 1;
  return static_cast<double>(weight.size[0]) * static_cast<double>(weight.size[1]) *
         shard_of(weight.split, one_expert, 1).weight;
}

}  // namespace

void add_gradient_placeholders(const Graph& graph, Plan& plan) {
  const double element_bytes = bytes_per_element(plan.precision.weight);
  for (Stage& stage : plan.stages) {
    std::vector<WeightShape> seen;
    for (Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Layer& layer = graph.layers[static_cast<std::size_t>(chunk.layers[i])];
        const auto kind = static_cast<std::size_t>(
            plan.profile.layers[static_cast<std::size_t>(chunk.layers[i])].kind);
        std::vector<Option>& options = plan.profile.kinds[kind];
        Option option = options[static_cast<std::size_t>(chunk.options[i])];
        double bytes = 0;
        for (OperatorId id = layer.first; id < layer.last; ++id) {
          for (const WeightShape& weight :
               weights_of(graph.operators[static_cast<std::size_t>(id)])) {
            if (std::find(seen.begin(), seen.end(), weight) != seen.end()) continue;
            seen.push_back(weight);
            bytes += elements_on_device(weight, option.how) * element_bytes;
          }
        }
        if (bytes <= 0) continue;
        option.cost.fixed_bytes = std::max(0.0, option.cost.fixed_bytes) + bytes;
        chunk.options[i] = static_cast<std::int32_t>(options.size());
        options.push_back(std::move(option));
      }
    }
  }
}

}  // namespace braid
