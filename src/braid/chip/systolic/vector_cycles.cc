#include "braid/chip/systolic/vector_cycles.h"

#include <algorithm>

#include "braid/graph/pointwise_figures.h"

namespace braid {
namespace {

/// The function that an operator computes in each of its elements; empty for others.
std::string_view lane_function(const OperatorKind& kind) {
  if (std::holds_alternative<Softmax>(kind)) return "softmax";
  if (std::holds_alternative<Normalization>(kind)) return "norm";
  const auto* pointwise = std::get_if<Elementwise>(&kind);
  if (pointwise == nullptr) return {};
  if (pointwise->keeps == Elementwise::Keeps::mask) {
    return pointwise->flops_per_element > 1 ? "dropout" : "relu";
  }
  if (pointwise->flops_per_element == 1) return "add";
  if (pointwise->flops_per_element == kSiluFlops) return "silu";
  if (pointwise->flops_per_element == kGeluFlops) return "gelu";
  return {};
}

}  // namespace

const std::vector<LaneCycles>& published_lane_cycles() {
  static const std::vector<LaneCycles> cycles = {
      {"add", 1, 1},   {"mul", 1, 1},      {"norm", 1, 1},    {"relu", 1, 1},
      {"gelu", 1, 1},  {"softmax", 10, 2}, {"dropout", 2, 1}, {"div", 10, 10},
      {"tanh", 27, 2}, {"pow", 15, 16},    {"sqrt", 15, 16},  {"silu", 12, 12},
  };
  return cycles;
}

std::optional<double> published_element_cycles(const Operator& op) {
  const std::string_view function = lane_function(op.kind);
  const std::vector<LaneCycles>& cycles = published_lane_cycles();
  const auto found = std::find_if(cycles.begin(), cycles.end(), [&](const LaneCycles& lane) {
    return lane.function == function;
  });
  if (found == cycles.end()) return std::nullopt;
  return op.pass == Pass::forward ? found->forward : found->backward;
}

}  // namespace braid
