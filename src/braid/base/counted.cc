#include "braid/base/counted.h"

#include <fmt/format.h>

namespace braid {

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace braid
