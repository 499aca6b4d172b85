// faster_change PLAN.json: the fastest plan that braid verify accepts among those that differ in
// one thing from a plan. Of a plan that was called proven, none is faster; exits with 1 where one
// is.

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_json.h"

#include "validate/single_changes.h"

namespace braid {
namespace {

int attack(const char* path) {
  const Plan plan = read_plan(path);
  if (!is_uniform(plan)) {
    throw Error("stages of the plan have forms of their own", "give a plan of one parallel form");
  }
  const Graph graph = load_model(plan.model_source, {.seq_len = plan.seq_len, .dims = {}});
  if (graph.layers.size() != plan.profile.layers.size()) {
    throw Error("the model has other layers than the plan",
                "run it where the plan's model_source means the same");
  }
  const test::FastestChange fastest = test::fastest_single_change(plan, graph);
  fmt::print("{:.9g} s replayed; {} plans with one change, {} of them accepted\n", fastest.plan_s,
             fastest.shown, fastest.accepted);
  if (fastest.accepted > 0) {
    fmt::print("fastest: {}, {:.9g} s ({:+.4f}%)\n", fastest.what, fastest.time_s,
               100 * (fastest.time_s / fastest.plan_s - 1));
  }
  return fastest.is_faster() ? 1 : 0;
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: faster_change PLAN.json\n", stderr);
    return 2;
  }
  try {
    return braid::attack(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "faster_change: {}\n", error.what());
    return 2;
  }
}
