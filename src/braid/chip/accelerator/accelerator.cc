#include "braid/chip/accelerator/accelerator.h"

#include <algorithm>

namespace braid {

double published_l2_bytes(double units) {
  constexpr double kKilobyte = 1024;
  return std::max(1.0, units / 64) * kKilobyte;
}

}  // namespace braid
