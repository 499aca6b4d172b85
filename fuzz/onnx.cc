#include "braid/frontend/onnx.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    static_cast<void>(graph_from_onnx_bytes(text, "input", {}));
  });
}
