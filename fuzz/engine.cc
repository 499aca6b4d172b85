#include "braid/serve/engine.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::yaml, [](const Value& root) {
    const Engine engine = read_engine(root);
    static_cast<void>(factors_of(engine.corrections, {false, "h100-sxm", "llama-3-8b", "fp8"}));
  });
}
