#include "braid/serve/layout.h"

#include <fmt/format.h>

namespace braid {

std::string layout_text(const ServingLayout& layout) {
  std::string text = fmt::format("TP {}", layout.tp);
  if (layout.dp > 1) text += fmt::format(", attention DP {}", layout.dp);
  if (layout.moe_ep > 1) text += fmt::format(", EP {}", layout.moe_ep);
  if (layout.pp > 1) text += fmt::format(", PP {}", layout.pp);
  if (layout.cp > 1) text += fmt::format(", DCP {}", layout.cp);
  return text;
}

}  // namespace braid
