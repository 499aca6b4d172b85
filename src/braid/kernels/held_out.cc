#include "braid/kernels/held_out.h"

namespace braid {

std::uint32_t crc32(std::string_view text) {
  constexpr std::uint32_t kReversedPolynomial = 0xEDB88320U;
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char c : text) {
    rest ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? kReversedPolynomial : 0);
    }
  }
  return ~rest;
}

}  // namespace braid
