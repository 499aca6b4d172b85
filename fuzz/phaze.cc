#include <cmath>

#include "braid/planners/phaze/problem.h"

#include "fuzz/read_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_document(bytes, size, Document::Syntax::json, [](const Value& root) {
    const PhazeProblem problem = read_phaze(root, {});
    fuzz::expect(std::isfinite(problem.memory_bytes) && problem.bytes_per_s > 0);
  });
}
