#pragma once

#include <string>

#include "braid/base/document.h"

namespace braid {

/// Main memory in place of a chip's own, as a space has it.
struct PricedMemory {
  std::string name;
  double bytes = 0, bytes_per_s = 0;
  double usd_per_gb_per_s = 0, w_per_gb_per_s = 0;
};

/// Of an axis `memories`. Throws Error.
PricedMemory read_priced_memory(const std::string& name, const Value& value);

}  // namespace braid
