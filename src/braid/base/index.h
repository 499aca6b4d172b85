#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

/// Where a count or an identifier, which are signed, is found in a container. `index` ≥ 0.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace braid
