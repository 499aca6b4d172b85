#include "braid/dataflow/dataflow_setup.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const DataflowSetup setup = parse_dataflow_setup(text, "input");
    fuzz::expect(setup.chips >= 1);
  });
}
