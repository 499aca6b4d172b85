#include "braid/planners/piper/variants.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Numbers the stages' options as the full problem does, which has those that recompute too.
void count_recomputing(const PiperProblem& problem, std::vector<PiperStage>& stages) {
  for (PiperStage& stage : stages) {
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
}

std::string stage_name(const PiperProblem& problem, const PiperStage& stage) {
  const std::string& first = problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name;
  const std::string& last = problem.nodes[static_cast<std::size_t>(stage.nodes.back())].name;
  return first == last ? first : first + " to " + last;
}

/// The layer that needs most memory even alone, on its best options, with nothing behind it.
void explain_layers(const PiperProblem& problem, double beside_bytes, PiperSolution& solution) {
  double most_short_bytes = 0;
  const std::int64_t most_tp =
      problem.levels.empty() ? problem.devices : problem.levels.front().devices;
  for (const PiperNode& node : problem.nodes) {
    double least = kInfinity;
    if (node.degrees.empty()) {
      solution.reason =
          fmt::format("{} has no option of the kinds that the planner uses", node.name);
      solution.needed_bytes = 0;
      return;
    }
    for (const PiperDegree& degree : node.degrees) {
      if (degree.tp > most_tp) continue;
      for (const PiperOption& option : degree.options) {
        least = std::min(least, option.in_flight_bytes + option.fixed_bytes);
      }
    }
    if (least == kInfinity) {
      solution.reason = fmt::format("{} has no option for {} devices", node.name, most_tp);
      solution.needed_bytes = 0;
      return;
    }
    const double short_bytes = least - problem.memory_bytes;
    if (short_bytes <= most_short_bytes) continue;
    most_short_bytes = short_bytes;
    solution.needed_bytes = least + beside_bytes;
    solution.reason = fmt::format("{} alone needs {} on a device, {} more than there is", node.name,
                                  format_bytes(solution.needed_bytes), format_bytes(short_bytes));
  }
}

/// Stages for a problem with so much memory.
using StagesWithin = std::function<std::optional<std::vector<PiperStage>>(double memory_bytes)>;

double fullest_bytes(const std::vector<PiperStage>& stages) {
  double fullest = 0;
  for (const PiperStage& stage : stages) fullest = std::max(fullest, stage.memory_bytes);
  return fullest;
}

/// Stages that need the least memory above `low`, to 0.05 %, with what is known of more.
std::vector<PiperStage> bisect(double low, std::vector<PiperStage> known,
                               const StagesWithin& stages_within) {
  constexpr double kClose = 1.0005;
  bool first = true;
  const auto next = [&](const ThresholdRange& range) -> std::optional<double> {
    if (range.high <= range.low * kClose) return std::nullopt;
    // What is known is often the least already.
    if (std::exchange(first, false)) return range.high / kClose * kAboveTolerance;
    return (range.low + range.high) / 2;
  };
  const double high = fullest_bytes(known);
  return least_memory({low, high}, std::move(known), next, stages_within, fullest_bytes);
}

/// Stages within little more than the least memory with which there are any; none whatever the
/// memory: empty. There are none within the problem's.
std::vector<PiperStage> least_memory_stages(const PiperProblem& problem, PiperSolve solve,
                                            const PiperSearchLimits& limits) {
  PiperProblem other = problem;
  const auto with = [&](const auto& solve_other) {
    return [&other, &solve_other](double memory_bytes) {
      other.memory_bytes = memory_bytes;
      return solve_other();
    };
  };
  const auto solved = [&]() -> std::optional<std::vector<PiperStage>> {
    std::vector<PiperStage> stages = solve(other, limits).stages;
    if (stages.empty()) return std::nullopt;
    return stages;
  };
  const auto all = [&] { return solve != solve_piper ? solved() : feasible_stages(other, limits); };
  const auto some = [&] {
    return solve != solve_piper ? solved() : feasible_stages_soon(other, limits);
  };
  const StagesWithin within = with(all), soon_within = with(some);
  // With so much memory only the counts of devices can be in the way.
  constexpr double kAnyMemory = std::numeric_limits<double>::max() / 4;
  const bool some_do = soon_within(kAnyMemory).has_value();
  if (!some_do && !within(kAnyMemory)) return {};
  const StagesWithin& first = some_do ? soon_within : within;
  ThresholdRange range{problem.memory_bytes, 2 * problem.memory_bytes};
  std::optional<std::vector<PiperStage>> found = first_within(range, 2, first);
  assert(found.has_value());
  std::vector<PiperStage> stages = bisect(range.low, std::move(*found), first);
  return some_do ? bisect(problem.memory_bytes, std::move(stages), within) : stages;
}

}  // namespace

PiperProblem PiperVariant::restrict(PiperProblem problem) const {
  for (PiperNode& node : problem.nodes) {
    if (!tp) std::erase_if(node.degrees, [](const PiperDegree& degree) { return degree.tp != 1; });
    if (recompute) continue;
    for (PiperDegree& degree : node.degrees) {
      std::erase_if(degree.options, [](const PiperOption& option) { return option.recompute; });
    }
    std::erase_if(node.degrees, [](const PiperDegree& degree) { return degree.options.empty(); });
  }
  if (!dp) problem.most_dp = 1;
  if (!cuts) problem.one_stage = true;
  return problem;
}

PiperSolution PiperVariant::solve(const PiperProblem& problem,
                                  const PiperSearchLimits& limits) const {
  PiperSolution solution = search(restrict(problem), limits);
  if (!recompute) count_recomputing(problem, solution.stages);
  return solution;
}

const PiperVariant& find_piper_variant(std::string_view name) {
  std::string known;
  for (const PiperVariant& variant : kPiperVariants) {
    if (variant.name == name) return variant;
    known += (known.empty() ? "" : ", ") + std::string(variant.name);
  }
  throw Error(Where{"", 0, "--planner"},
              "\"" + std::string(name) + "\" does not plan from a profile alone",
              "use one of " + known);
}

void explain_infeasible(const PiperProblem& problem, PiperSolve solve,
                        const PiperSearchLimits& limits, PiperSolution& solution,
                        double beside_bytes) {
  explain_layers(problem, beside_bytes, solution);
  if (!solution.reason.empty()) return;
  std::vector<PiperStage> stages = least_memory_stages(problem, solve, limits);
  if (stages.empty()) {
    solution.reason = fmt::format(
        "the layers' tensor-parallel degrees, and what the planner may do, do not fit {} devices",
        problem.devices);
    return;
  }
  const auto fullest = std::max_element(
      stages.begin(), stages.end(),
      [](const PiperStage& a, const PiperStage& b) { return a.memory_bytes < b.memory_bytes; });
  solution.needed_bytes = fullest->memory_bytes + beside_bytes;
  solution.reason = fmt::format(
      "every way to cut stages needs at least {} a device (here stage {}, {}), {} more than there "
      "is",
      format_bytes(solution.needed_bytes), fullest - stages.begin() + 1,
      stage_name(problem, *fullest), format_bytes(fullest->memory_bytes - problem.memory_bytes));
}

}  // namespace braid
