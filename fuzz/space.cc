#include "braid/explore/space_reader.h"

#include "fuzz/read_input.h"

// Spaces name planners; planning itself is not read, and its room takes longest to build.
const std::vector<braid::PlannerEntry>& braid::planners() {
  static const std::vector<PlannerEntry> names = {{"braid", "", nullptr},
                                                  {"megatron", "", nullptr}};
  return names;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const Space space = parse_space(Document::parse(text, Document::Syntax::yaml, "input"));
    fuzz::expect(point_count(space) <= kMostPoints);
  });
}
