#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "braid/frontend/onnx_node.h"
#include "braid/graph/graph.h"

namespace braid {

/// Says what comes out of a node and returns what it does at run time; nullopt for nothing.
using OnnxRule = std::optional<OperatorKind> (*)(OnnxNodeView& node);

/// The rule for an operation of ONNX's own domain ("") or another; nullptr when it is not known.
OnnxRule onnx_rule(std::string_view domain, std::string_view operation);

/// All operations that have a rule, sorted by name.
std::vector<std::string_view> onnx_operations();

struct OnnxRuleEntry {
  std::string_view operation;
  OnnxRule rule;
};
// The rules, by what the operations do.
std::span<const OnnxRuleEntry> onnx_pointwise_rules();
std::span<const OnnxRuleEntry> onnx_gemm_rules();
std::span<const OnnxRuleEntry> onnx_attention_rules();
std::span<const OnnxRuleEntry> onnx_window_rules();
std::span<const OnnxRuleEntry> onnx_recurrent_rules();
std::span<const OnnxRuleEntry> onnx_reduction_rules();
std::span<const OnnxRuleEntry> onnx_normalization_rules();
std::span<const OnnxRuleEntry> onnx_view_rules();
std::span<const OnnxRuleEntry> onnx_movement_rules();
std::span<const OnnxRuleEntry> onnx_gather_rules();
std::span<const OnnxRuleEntry> onnx_constant_rules();

}  // namespace braid
