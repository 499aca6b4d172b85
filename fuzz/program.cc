#include "braid/frontend/onnx_program.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    static_cast<void>(program_from_onnx_bytes(text, "input", {}));
  });
}
