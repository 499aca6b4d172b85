#include "braid/base/quantity.h"

#include <cmath>

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    for (const Unit unit : {Unit::bytes, Unit::bytes_per_s, Unit::seconds, Unit::flops_per_s,
                            Unit::watts, Unit::usd, Unit::hertz, Unit::metres2, Unit::joules}) {
      const auto quantity = parse_quantity(text, unit);
      if (!quantity) continue;
      fuzz::expect(std::isfinite(*quantity) && *quantity >= 0);
      fuzz::expect(!format_bytes(*quantity).empty() && !format_seconds(*quantity).empty());
      fuzz::expect(!format_bytes_per_s(*quantity).empty() && !format_count(*quantity).empty());
    }
  });
}
