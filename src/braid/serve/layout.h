#pragma once

#include <cstdint>
#include <string>

namespace braid {

/// How one worker (replica of the model) lies on its devices. Attention has `tp` ranks in each of
/// `dp` groups, experts have moe_tp · moe_ep = tp · dp ranks; `pp` stages of layers. Of a group's
/// ranks, `cp` by `cp` keep the same heads' caches and divide their tokens (decode context
/// parallelism): it takes no devices.
struct ServingLayout {
  std::int64_t tp = 1, pp = 1, dp = 1;
  std::int64_t moe_tp = 1, moe_ep = 1;
  std::int64_t cp = 1;

  std::int64_t stage_devices() const { return tp * dp; }
  std::int64_t devices() const { return tp * dp * pp; }
  friend bool operator==(const ServingLayout&, const ServingLayout&) = default;
};

/// "TP 2, attention DP 4, EP 8, PP 2, DCP 2"; degrees of 1 but TP's are left out.
std::string layout_text(const ServingLayout& layout);

}  // namespace braid
