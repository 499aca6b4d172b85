#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

/// "1 GPU", "8 GPUs": a whole number of what has the plural with an s.
std::string counted(std::int64_t count, std::string_view what);

}  // namespace braid
