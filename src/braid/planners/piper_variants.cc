#include "braid/planners/piper_variants.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"

namespace braid {
namespace {

/// The problem with options and degrees left out; a layer may end up with none.
PiperProblem without(PiperProblem problem, bool tensor_parallel, bool recompute) {
  for (PiperNode& node : problem.nodes) {
    if (tensor_parallel) std::erase_if(node.degrees, [](const auto& d) { return d.tp != 1; });
    if (!recompute) continue;
    for (PiperDegree& degree : node.degrees) {
      std::erase_if(degree.options, [](const PiperOption& option) { return option.recompute; });
    }
    std::erase_if(node.degrees, [](const PiperDegree& degree) { return degree.options.empty(); });
  }
  return problem;
}

PiperSolution solve_no_dp(const PiperProblem& problem, const PiperSearchLimits& limits) {
  PiperProblem less = problem;
  less.most_dp = 1;
  return solve_piper(less, limits);
}

PiperSolution solve_no_tp(const PiperProblem& problem, const PiperSearchLimits& limits) {
  return solve_piper(without(problem, true, false), limits);
}

/// Gives the stages' options their places in the full problem's lists.
PiperSolution solve_no_ar(const PiperProblem& problem, const PiperSearchLimits& limits) {
  PiperSolution solution = solve_piper(without(problem, false, true), limits);
  for (PiperStage& stage : solution.stages) {
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      const PiperNode& node = problem.nodes[static_cast<std::size_t>(stage.nodes[i])];
      const auto degree = std::find_if(node.degrees.begin(), node.degrees.end(),
                                       [&](const PiperDegree& d) { return d.tp == stage.tp; });
      std::int32_t kept = -1;
      for (std::size_t o = 0; o < degree->options.size(); ++o) {
        if (!degree->options[o].recompute && ++kept == stage.options[i]) {
          stage.options[i] = static_cast<std::int32_t>(o);
          break;
        }
      }
    }
  }
  return solution;
}

PiperSolution solve_dp_only(const PiperProblem& problem, const PiperSearchLimits& limits) {
  PiperProblem less = without(problem, true, false);
  less.one_stage = true;
  return solve_piper(less, limits);
}

PiperSolution solve_tp_only(const PiperProblem& problem, const PiperSearchLimits& limits) {
  PiperProblem less = problem;
  less.one_stage = true;
  less.most_dp = 1;
  return solve_piper(less, limits);
}

PiperSolution solve_equi_no_tp(const PiperProblem& problem, const PiperSearchLimits& limits) {
  return solve_equi(without(problem, true, false), limits);
}

std::string stage_name(const PiperProblem& problem, const PiperStage& stage) {
  const std::string& first = problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name;
  const std::string& last = problem.nodes[static_cast<std::size_t>(stage.nodes.back())].name;
  return first == last ? first : first + " to " + last;
}

/// The layer that needs most memory even alone, on its best options, with nothing behind it.
void explain_layers(const PiperProblem& problem, PiperSolution& solution) {
  for (const PiperNode& node : problem.nodes) {
    double least = std::numeric_limits<double>::infinity();
    for (const PiperDegree& degree : node.degrees) {
      if (degree.tp > problem.devices) continue;
      for (const PiperOption& option : degree.options) {
        least = std::min(least, option.in_flight_bytes + option.fixed_bytes);
      }
    }
    if (least == std::numeric_limits<double>::infinity()) {
      solution.reason = fmt::format("{} has no option for {} devices", node.name, problem.devices);
      solution.needed_bytes = 0;
      return;
    }
    if (least > problem.memory_bytes && least > solution.needed_bytes) {
      solution.needed_bytes = least;
      solution.reason =
          fmt::format("{} alone needs {} on a device, {} more than there is", node.name,
                      format_bytes(least), format_bytes(least - problem.memory_bytes));
    }
  }
}

}  // namespace

const std::vector<PiperVariant>& piper_variants() {
  static const std::vector<PiperVariant> variants = {
      {"piper", "stages with their own data and tensor degrees, an option per layer", solve_piper},
      {"no-dp", "piper without data parallelism", solve_no_dp},
      {"no-tp", "piper without tensor parallelism", solve_no_tp},
      {"no-ar", "piper without activation recomputation", solve_no_ar},
      {"equi", "PipeDream-2BW's equal stages, with tensor parallelism", solve_equi},
      {"equi-no-tp", "PipeDream-2BW's equal stages", solve_equi_no_tp},
      {"pipedream", "PipeDream's recurrence on the layers as a chain", solve_pipedream},
      {"dp-only", "one stage, data parallelism", solve_dp_only},
      {"tp-only", "one stage, tensor parallelism", solve_tp_only},
  };
  return variants;
}

const PiperVariant& find_piper_variant(std::string_view name) {
  std::string known;
  for (const PiperVariant& variant : piper_variants()) {
    if (variant.name == name) return variant;
    known += (known.empty() ? "" : ", ") + std::string(variant.name);
  }
  throw Error(Where{"", 0, "--planner"},
              "\"" + std::string(name) + "\" does not plan from a profile alone",
              "use one of " + known);
}

void explain_infeasible(const PiperProblem& problem, const PiperSearchLimits& limits,
                        PiperSolution& solution) {
  explain_layers(problem, solution);
  if (!solution.reason.empty()) return;
  // With so much memory only the counts of devices can be in the way.
  PiperProblem other = problem;
  other.memory_bytes = std::numeric_limits<double>::max() / 4;
  if (!feasible_stages(other, limits)) {
    solution.reason =
        fmt::format("the layers' tensor-parallel degrees do not fit {} devices", problem.devices);
    return;
  }
  double low = problem.memory_bytes, high = low;
  do {
    low = high;
    other.memory_bytes = high = 2 * high;
  } while (!feasible_stages(other, limits));
  PiperProblem enough = other;
  while (high > low * 1.0005) {
    other.memory_bytes = (low + high) / 2;
    const bool feasible = feasible_stages(other, limits).has_value();
    (feasible ? high : low) = other.memory_bytes;
    if (feasible) enough.memory_bytes = high;
  }
  const auto stages = feasible_stages(enough, limits);
  const auto fullest = std::max_element(
      stages->begin(), stages->end(),
      [](const PiperStage& a, const PiperStage& b) { return a.memory_bytes < b.memory_bytes; });
  solution.needed_bytes = fullest->memory_bytes;
  solution.reason = fmt::format(
      "memory for every stage takes {} a device: stage {} ({}) then needs {}, {} more than there "
      "is",
      format_bytes(fullest->memory_bytes), fullest - stages->begin(), stage_name(problem, *fullest),
      format_bytes(fullest->memory_bytes),
      format_bytes(fullest->memory_bytes - problem.memory_bytes));
}

}  // namespace braid
