#include "braid/report/terms.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braid {

std::vector<std::pair<std::string, double>> time_terms(const Metrics& m) {
  return {{"compute", m.compute_s},
          {"recomputation", m.recompute_s},
          {"exposed TP communication", m.tp_comm_s},
          {"exposed CP communication", m.cp_comm_s},
          {"exposed EP communication", m.ep_comm_s},
          {"exposed PP communication", m.pp_comm_s},
          {"exposed gradient sync", m.dp_comm_s},
          {"pipeline bubble", m.bubble_s},
          {"offload", m.offload_s},
          {"optimizer", m.optimizer_s}};
}

std::vector<std::pair<std::string, double>> memory_terms(const MemoryBreakdown& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer state", memory.optimizer},
          {"activations", memory.activations},
          {"working space", memory.working}};
}

std::string part_text(double part, double whole) {
  constexpr int figures = 5, most = 12;
  const double size = std::abs(whole);
  const int before =
      size > 0 && std::isfinite(size) ? static_cast<int>(std::floor(std::log10(size))) + 1 : 1;
  const int decimals = before == 2 ? 2 : std::clamp(figures - before, 0, most);
  std::string text = fmt::format("{:.{}f}", part, decimals);
  // Not "-0.00".
  return is_zero(text) && text.front() == '-' ? text.substr(1) : text;
}

bool is_zero(const std::string& figure) {
  return figure.find_first_not_of("-0.") == std::string::npos;
}

std::string rate_text(double per_s) {
  return per_s < 100 ? fmt::format("{:.3g}", per_s) : fmt::format("{:.0f}", per_s);
}

}  // namespace braid
