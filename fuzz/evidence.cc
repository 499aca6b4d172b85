#include "braid/trust/evidence.h"

#include "fuzz/read_input.h"

// What is read is written as it is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const std::string written = evidence_text(parse_evidence(text, "input"));
    fuzz::expect(evidence_text(parse_evidence(written, "written")) == written);
  });
}
