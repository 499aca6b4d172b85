#include "braid/base/json.h"
#include "braid/plan/plan_json.h"
#include "braid/report/alternatives.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::json, [](const Value& root) {
    const std::string text = to_text(to_json(plan_from_json(root)));
    alternatives_from_json(root);
    const Document again = Document::parse(text, Document::Syntax::json, "written");
    fuzz::expect(to_text(to_json(plan_from_json(again.root()))) == text);
  });
}
