#include "braid/frontend/onnx_rules.h"

#include <algorithm>
#include <unordered_map>

#include "braid/program/contributed_operations.h"

namespace braid {
namespace {

using Rules = std::unordered_map<std::string_view, OnnxRule>;

Rules collect() {
  Rules rules;
  for (const auto& list :
       {onnx_pointwise_rules(), onnx_gemm_rules(), onnx_attention_rules(), onnx_window_rules(),
        onnx_recurrent_rules(), onnx_reduction_rules(), onnx_normalization_rules(),
        onnx_view_rules(), onnx_movement_rules(), onnx_gather_rules(), onnx_constant_rules()}) {
    for (const OnnxRuleEntry& entry : list) rules.emplace(entry.operation, entry.rule);
  }
  return rules;
}

const Rules& known_rules() {
  static const Rules all = collect();
  return all;
}

}  // namespace

OnnxRule onnx_rule(std::string_view domain, std::string_view operation) {
  if (!domain.empty() && !(domain == contributed_domain && is_contributed(operation))) {
    return nullptr;
  }
  const auto found = known_rules().find(operation);
  return found == known_rules().end() ? nullptr : found->second;
}

std::vector<std::string_view> onnx_operations() {
  std::vector<std::string_view> names;
  names.reserve(known_rules().size());
  for (const auto& [name, rule] : known_rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace braid
