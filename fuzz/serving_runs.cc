#include "braid/serve/served_rows.h"
#include "braid/trust/serving_interval.h"

#include "fuzz/read_input.h"

// Evidence that is read is written as it is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    if (is_served_rows(text)) {
      static_cast<void>(parse_served_rows(text, "input"));
    } else {
      const std::string written = serving_evidence_text(parse_serving_evidence(text, "input"));
      fuzz::expect(serving_evidence_text(parse_serving_evidence(written, "written")) == written);
    }
  });
}
