#include "braid/frontend/hugging_face.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::json, [](const Value& root) {
    const Graph graph = graph_from_config(root, "model", {});
    fuzz::expect(!graph.operators.empty());
  });
}
