// The table of docs/graphpipe.md: graph pipelines against lines of stages, with the same nodes,
// times and search.

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "braid/planners/graphpipe_search.h"

#include "graphpipe_models.h"

namespace {

struct Row {
  braid::GraphPipeSolution plan;
  double iteration_s = 0;
  double search_ms = 0;
};

Row solve(const braid::GraphPipeProblem& problem) {
  const std::clock_t start = std::clock();
  Row row{braid::solve_graphpipe_iteration(problem)};
  row.search_ms = static_cast<double>(std::clock() - start) * 1e3 / CLOCKS_PER_SEC;
  if (!row.plan.stages.empty()) row.iteration_s = graphpipe_iteration_s(problem, row.plan);
  return row;
}

std::string cells(const braid::GraphPipeProblem& problem, const Row& row) {
  if (row.plan.stages.empty()) return "no plan | | | | | |";
  double peak_bytes = 0;
  for (const braid::GraphPipeStage& stage : row.plan.stages) {
    peak_bytes = std::max(peak_bytes, stage.memory_bytes);
  }
  return fmt::format("{:.0f} | {} | {} | {} | {:.1f} | {:.1f} |",
                     static_cast<double>(problem.batch) / row.iteration_s, row.plan.stages.size(),
                     row.plan.depth(), row.plan.stages[0].group.micro_batch, peak_bytes / 1e9,
                     row.search_ms);
}

void compare(const std::string& name, const braid::GraphPipeProblem& problem) {
  const braid::GraphPipeProblem linear = braid::linear_graphpipe(problem);
  const Row graph = solve(problem);
  const Row line = solve(linear);
  fmt::print("| {} | {} | {} {} {:.2f} |\n", name, problem.devices, cells(problem, graph),
             cells(linear, line), line.iteration_s / graph.iteration_s);
}

}  // namespace

int main() {
  fmt::print(
      "| model | V100 | samples/s | stages | depth | micro-batch | GB | search ms | line: "
      "samples/s | stages | depth | micro-batch | GB | search ms | faster by |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const braid::ThesisModel& model : braid::kThesisModels) {
    for (std::int64_t devices = 4; devices <= 32; devices *= 2) {
      compare(model.name, braid::thesis_problem(model.name, devices, model.batch * devices / 4));
    }
  }
}
