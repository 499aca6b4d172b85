#include "braid/backend/place/placement_file.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::json, [](const Value& root) {
    const std::string text = placement_text(placement_from_json(root));
    const Document again = Document::parse(text, Document::Syntax::json, "written");
    fuzz::expect(placement_text(placement_from_json(again.root())) == text);
  });
}
