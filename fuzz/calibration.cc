#include "braid/system/calibration.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  const auto read = [](const Value& root) {
    const std::string text = calibration_text(calibration_from(root).chips);
    const Document again = Document::parse(text, Document::Syntax::yaml, "written");
    fuzz::expect(calibration_text(calibration_from(again.root()).chips) == text);
  };
  return fuzz::read_document(bytes, size, Document::Syntax::yaml, read);
}
