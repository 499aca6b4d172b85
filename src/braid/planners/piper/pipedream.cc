#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/variants.h"

namespace braid {
namespace {

constexpr std::size_t kMostEntries = 20'000'000;
constexpr double kMostSplitSteps = 2e10;

/// Least slowest part of the layers before a point on at most so many devices, and how it arises.
struct Entry {
  double time = kInfinity;
  std::int32_t begin = -1;  ///< Of the last stage.
  std::int32_t dp = 0;
};

const PiperOption* plain_option(const PiperNode& node, std::int32_t& number) {
  const PiperOption* best = nullptr;
  for (const PiperDegree& degree : node.degrees) {
    if (degree.tp != 1) continue;
    for (std::size_t o = 0; o < degree.options.size(); ++o) {
      const PiperOption& option = degree.options[o];
      if (option.recompute || (best != nullptr && best->time <= option.time)) continue;
      best = &option;
      number = static_cast<std::int32_t>(o);
    }
  }
  return best;
}

}  // namespace

PiperSolution solve_pipedream(const PiperProblem& problem, const PiperSearchLimits&) {
  check_flat(problem, "pipedream");
  const std::size_t layers = problem.nodes.size();
  PiperSolution solution;
  std::vector<std::int32_t> options(layers, 0);
  std::vector<double> time(layers + 1, 0), parameters(layers + 1, 0), between(layers + 1, 0);
  for (std::size_t v = 0; v < layers; ++v) {
    const PiperOption* option = plain_option(problem.nodes[v], options[v]);
    if (option == nullptr) {
      solution.reason = problem.nodes[v].name + " has no option without tensor parallelism";
      return solution;
    }
    time[v + 1] = time[v] + option->time;
    parameters[v + 1] = parameters[v] + option->parameter_bytes;
  }
  for (const PiperEdge& edge : problem.edges) {
    for (std::int32_t cut = edge.source + 1; cut <= edge.target; ++cut) {
      between[static_cast<std::size_t>(cut)] += edge.bytes;
    }
  }
  const std::vector<std::int64_t> dps = piper_dp_degrees(problem);
  const auto most = static_cast<std::size_t>(std::min(problem.devices, problem.micro_batches));
  const double steps = static_cast<double>(most) * static_cast<double>(layers * layers) / 2 *
                       static_cast<double>(dps.size());
  if (most * layers > kMostEntries || steps > kMostSplitSteps) {
    throw Error("pipedream's table of layers and devices is too large", "plan for fewer devices");
  }
  std::vector<std::vector<Entry>> table(layers + 1, std::vector<Entry>(most + 1));
  for (Entry& entry : table[0]) entry.time = 0;
  for (std::size_t end = 1; end <= layers; ++end) {
    for (std::size_t begin = 0; begin < end; ++begin) {
      const double handover = 2 * between[begin] / problem.bandwidth_bytes;
      for (const std::int64_t dp : dps) {
        const auto replicas = static_cast<std::size_t>(dp);
        const auto m = static_cast<double>(dp);
        const double sync =
            2 * (m - 1) * (parameters[end] - parameters[begin]) / problem.bandwidth_bytes;
        const double stage = std::max(handover, std::max(time[end] - time[begin], sync) / m);
        for (std::size_t devices = replicas; devices <= most; ++devices) {
          ++solution.work;
          Entry& entry = table[end][devices];
          const double slowest = std::max(stage, table[begin][devices - replicas].time);
          if (slowest < entry.time) {
            entry = {slowest, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(dp)};
          }
        }
      }
    }
  }
  if (table[layers][most].time == kInfinity) {
    solution.reason = "no data-parallel degree that may be used fits the devices and micro-batches";
    return solution;
  }
  std::size_t end = layers, devices = most;
  while (end > 0) {
    const Entry& entry = table[end][devices];
    PiperStage stage;
    for (auto v = static_cast<std::size_t>(entry.begin); v < end; ++v) {
      stage.nodes.push_back(static_cast<std::int32_t>(v));
      stage.options.push_back(options[v]);
    }
    stage.dp = entry.dp;
    solution.stages.insert(solution.stages.begin(), std::move(stage));
    devices -= static_cast<std::size_t>(entry.dp);
    end = static_cast<std::size_t>(entry.begin);
  }
  std::int64_t suffix = 0;
  bool fits = true;
  PiperStagePricer pricer(problem);
  for (std::size_t s = solution.stages.size(); s-- > 0;) {
    PiperStage& stage = solution.stages[s];
    stage.suffix = suffix += stage.dp;
    pricer.price(stage);
    solution.time = std::max(solution.time, stage.time);
    if (stage.memory_bytes <= problem.memory_bytes * kAboveRounding) continue;
    fits = false;
    if (stage.memory_bytes < solution.needed_bytes) continue;
    solution.needed_bytes = stage.memory_bytes;
    solution.reason = fmt::format(
        "stage {} ({} to {}) of the plan made without regard to memory needs {}, {} more than "
        "there is",
        s + 1, problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name,
        problem.nodes[static_cast<std::size_t>(stage.nodes.back())].name,
        format_bytes(stage.memory_bytes), format_bytes(stage.memory_bytes - problem.memory_bytes));
  }
  solution.status = fits ? Status::feasible : Status::infeasible;
  if (!fits) {
    solution.stages.clear();
    solution.time = 0;
  }
  return solution;
}

}  // namespace braid
