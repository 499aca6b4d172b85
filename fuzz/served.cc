#include "braid/serve/served_config.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::json, [](const Value& root) {
    const ServedModel model = served_from_config(root, "model");
    fuzz::expect(parameter_count(model) > 0);
  });
}
