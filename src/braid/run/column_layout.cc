#include "braid/run/column_layout.h"

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Features side by side that are sharded by themselves.
struct FeatureBlock {
  std::int64_t width = 0;
  std::int64_t units = 0;  ///< That stay together: heads.
};

std::int64_t width_of(const Graph& graph, TensorId tensor) {
  return graph.tensors[at(tensor)].dims.back();
}

/// What the operands of attention have side by side.
std::vector<FeatureBlock> attention_blocks(const Graph& graph, const Operator& op,
                                           TensorId operand) {
  const auto& kind = std::get<Attention>(op.kind);
  const FeatureBlock q{kind.heads * kind.qk_dim, kind.heads};
  const FeatureBlock k{kind.kv_heads * kind.qk_dim, kind.kv_heads};
  const FeatureBlock v{kind.kv_heads * kind.v_dim, kind.kv_heads};
  const std::vector<std::vector<FeatureBlock>> by_operand[] = {
      {{q, k, v}}, {{q}, {k, v}}, {{q}, {k}, {v}}};
  for (const auto& operands : by_operand) {
    for (std::size_t i = 0; i < operands.size() && i < op.inputs.size(); ++i) {
      std::int64_t width = 0;
      for (const FeatureBlock& each : operands[i]) width += each.width;
      const bool of_all = op.inputs.size() == operands.size() ||
                          graph.tensors[at(op.inputs[operands.size()])].is_parameter;
      if (of_all && op.inputs[i] == operand && width == width_of(graph, operand)) {
        return operands[i];
      }
    }
  }
  return {};
}

/// What those who read a tensor have side by side in it; empty: nothing that is known.
std::vector<FeatureBlock> blocks_of(const Graph& graph, TensorId tensor) {
  for (const Operator& reader : graph.operators) {
    if (std::find(reader.inputs.begin(), reader.inputs.end(), tensor) == reader.inputs.end()) {
      continue;
    }
    if (std::holds_alternative<Attention>(reader.kind)) {
      return attention_blocks(graph, reader, tensor);
    }
    if (reader.split != Split::features || reader.outputs.size() != 1) continue;
    const std::int64_t width = width_of(graph, tensor), result = width_of(graph, reader.outputs[0]);
    if (std::holds_alternative<Elementwise>(reader.kind) && width == 2 * result) {
      return {{result, result}, {result, result}};
    }
    if (width != result) continue;
    std::vector<FeatureBlock> further = blocks_of(graph, reader.outputs[0]);
    if (!further.empty()) return further;
  }
  return {};
}

}  // namespace

ValueLayout column_layout(const Graph& graph, const Operator& product, int ranks,
                          const std::string& stage) {
  const TensorId result = product.outputs.front();
  const auto axis = static_cast<std::int32_t>(graph.tensors[at(result)].dims.size()) - 1;
  const std::int64_t width = width_of(graph, result);
  if (product.split == Split::vocab) {
    ValueLayout layout = even_layout(axis, width, ranks);
    if (!layout.held.back().empty()) return layout;
    throw Error(fmt::format("{} divides the {} entries of {} over {} ranks, some of which would "
                            "have none",
                            stage, width, product.name, ranks),
                "plan with fewer tensor-parallel ranks");
  }
  std::vector<FeatureBlock> blocks = blocks_of(graph, result);
  if (blocks.empty()) blocks = {{width, width}};
  ValueLayout layout{axis, width, 1, std::vector<std::vector<Interval>>(at(ranks))};
  std::int64_t before = 0;
  for (const FeatureBlock& block : blocks) {
    const bool is_shared = ranks % block.units == 0;
    if (!is_shared && block.units % ranks != 0) {
      throw Error(fmt::format("{} divides {} by {} ranks, which do not divide its {} heads or "
                              "columns",
                              stage, product.name, ranks, block.units),
                  "plan with a --tp that divides them");
    }
    const std::int64_t unit = block.width / block.units;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const std::int64_t first = r * block.units / ranks;
      const std::int64_t last = std::max(first + 1, (r + 1) * block.units / ranks);
      layout.held[at(r)].push_back({before + first * unit, before + last * unit});
    }
    before += block.width;
  }
  return layout;
}

}  // namespace braid
