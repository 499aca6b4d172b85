#include "braid/run/safetensors.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    for (const NamedTensor& each : tensors_of(text, "input")) {
      fuzz::expect(static_cast<std::size_t>(element_count(each.tensor.shape)) *
                       bytes_of(each.tensor.type) ==
                   each.tensor.data.size());
    }
  });
}
