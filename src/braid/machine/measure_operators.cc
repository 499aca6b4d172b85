#include "braid/machine/measure_operators.h"

#include <functional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/executor.h"
#include "braid/backend/measure/child_process.h"
#include "braid/backend/place/place_program.h"
#include "braid/base/error.h"
#include "braid/frontend/graph_program.h"
#include "braid/program/random_tensor.h"

namespace braid {
namespace {

constexpr double kOperatorLimit_s = 60;  ///< After which an operator is taken to hang.

FixedProgram fixed_program_of(const Graph& graph) {
  Program program = program_from_graph(graph);
  fill_missing_weights(program, 1);
  return fixed_program(program, random_inputs(program, 1));
}

/// The time that a process wrote, or `problem`.
double time_in(const ChildAnswer& answer, std::string& problem) {
  double time_s = 0;
  if (!answer.problem.empty()) {
    problem = answer.problem;
  } else if (!(std::istringstream(answer.text) >> time_s) || !(time_s > 0)) {
    problem = "gave no time";
  }
  return time_s;
}

}  // namespace

OperatorMeasurements measure_operators(std::vector<SampleOperator> operators,
                                       const std::vector<FoundBackend>& backends,
                                       const DeviceSplit& split, const MeasureOptions& options) {
  PlaceOptions place;
  place.measure = options;
  place.threads = split.threads;
  OperatorMeasurements result;
  for (SampleOperator& each : operators) {
    const FixedProgram program = fixed_program_of(each.graph);
    const std::vector<std::function<std::string()>> works(
        static_cast<std::size_t>(split.devices), [&] {
          return fmt::format("{:.17g}",
                             place_program(program, backends, nullptr, place).predicted_s);
        });
    double sum_s = 0;
    std::string problem;
    for (const ChildAnswer& answer : run_in_children(works, kOperatorLimit_s)) {
      sum_s += time_in(answer, problem);
    }
    if (!problem.empty()) {
      result.unmeasured.push_back(each.name + ": " + problem);
      continue;
    }
    result.operators.push_back({std::move(each), sum_s / static_cast<double>(split.devices)});
  }
  return result;
}

}  // namespace braid
