#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

/// CRC-32 of ISO-HDLC (zip, PNG). Linear.
std::uint32_t crc32(std::string_view text);

/// Whether fits leave a shape out, so that errors of shapes which they have not seen can be told: a
/// fifth of all, the same on every chip. `shape`: the fields of the shape as the table has them,
/// joined by commas.
inline bool is_held_out(std::string_view shape) { return crc32(shape) % 5 == 0; }

}  // namespace braid
