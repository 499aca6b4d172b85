#include "braid/chip/accelerator/stated_latency.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    static_cast<void>(parse_latencies(std::string(text), "input"));
  });
}
