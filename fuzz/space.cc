#include "braid/explore/space_reader.h"

#include "fuzz/read_input.h"

// Spaces name planners; planning itself is not read, and its room takes longest to build.
const std::vector<braid::PlannerEntry>& braid::planners() {
  static const std::vector<PlannerEntry> names = {{"braid", "", nullptr},
                                                  {"megatron", "", nullptr}};
  return names;
}

const braid::PlannerEntry& braid::find_planner(std::string_view name, const char* /*option*/) {
  return planners()[name == planners()[0].name ? 0 : 1];
}

std::string braid::planners_text(const std::function<bool(const PlannerEntry&)>& /*is*/) {
  return "the planner braid";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    const Space space = parse_space(Document::parse(text, Document::Syntax::yaml, "input"));
    fuzz::expect(point_count(space) <= kMostPoints);
  });
}
