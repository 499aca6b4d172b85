#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
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

/// Sums over the layers before each place, and the option of each layer.
struct ChainSums {
  std::vector<std::int32_t> options;
  std::vector<double> time, parameters;  ///< [place]
  std::vector<double> between;           ///< [place]: bytes that cross it.
};

/// Of a problem whose layers have options without tensor parallelism; else the layer that has none.
std::variant<ChainSums, std::size_t> chain_sums(const PiperProblem& problem) {
  const std::size_t layers = problem.nodes.size();
  ChainSums sums;
  sums.options.assign(layers, 0);
  for (auto* values : {&sums.time, &sums.parameters, &sums.between}) values->assign(layers + 1, 0);
  for (std::size_t v = 0; v < layers; ++v) {
    const PiperOption* option = plain_option(problem.nodes[v], sums.options[v]);
    if (option == nullptr) return v;
    sums.time[v + 1] = sums.time[v] + option->time;
    sums.parameters[v + 1] = sums.parameters[v] + option->parameter_bytes;
  }
  for (const PiperEdge& edge : problem.edges) {
    for (std::int32_t cut = edge.source + 1; cut <= edge.target; ++cut) {
      sums.between[at(cut)] += edge.bytes;
    }
  }
  return sums;
}

/// [layers before][devices]: the slowest stage of the fastest pipeline of these, and its last
/// stage.
using Table = std::vector<std::vector<Entry>>;

Table fill_table(const PiperProblem& problem, const ChainSums& sums, std::size_t most,
                 std::int64_t& work) {
  const std::size_t layers = problem.nodes.size();
  const std::vector<std::int64_t> dps = piper_dp_degrees(problem);
  const double steps = static_cast<double>(most) * static_cast<double>(layers * layers) / 2 *
                       static_cast<double>(dps.size());
  if (most * layers > kMostEntries || steps > kMostSplitSteps) {
    throw Error("pipedream's table of layers and devices is too large", "plan for fewer devices");
  }
  Table table(layers + 1, std::vector<Entry>(most + 1));
  for (Entry& entry : table[0]) entry.time = 0;
  for (std::size_t end = 1; end <= layers; ++end) {
    for (std::size_t begin = 0; begin < end; ++begin) {
      const double handover = 2 * sums.between[begin] / problem.bandwidth_bytes;
      for (const std::int64_t dp : dps) {
        const auto replicas = static_cast<std::size_t>(dp);
        const auto m = static_cast<double>(dp);
        const double sync =
            2 * (m - 1) * (sums.parameters[end] - sums.parameters[begin]) / problem.bandwidth_bytes;
        const double stage =
            std::max(handover, std::max(sums.time[end] - sums.time[begin], sync) / m);
        for (std::size_t devices = replicas; devices <= most; ++devices) {
          ++work;
          Entry& entry = table[end][devices];
          const double slowest = std::max(stage, table[begin][devices - replicas].time);
          if (slowest < entry.time) {
            entry = {slowest, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(dp)};
          }
        }
      }
    }
  }
  return table;
}

/// The stages of the table's last entry.
std::vector<PiperStage> stages_of(const Table& table, const std::vector<std::int32_t>& options) {
  std::vector<PiperStage> stages;
  std::size_t end = table.size() - 1, devices = table.back().size() - 1;
  while (end > 0) {
    const Entry& entry = table[end][devices];
    PiperStage stage;
    for (std::size_t v = at(entry.begin); v < end; ++v) {
      stage.nodes.push_back(static_cast<std::int32_t>(v));
      stage.options.push_back(options[v]);
    }
    stage.dp = entry.dp;
    stages.push_back(std::move(stage));
    devices -= at(entry.dp);
    end = at(entry.begin);
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
}

/// Prices the stages as Piper does, and says which of those that do not fit lacks most.
void price(const PiperProblem& problem, PiperSolution& solution) {
  std::int64_t suffix = 0;
  PiperStagePricer pricer(problem);
  solution.status = Status::feasible;
  for (std::size_t s = solution.stages.size(); s-- > 0;) {
    PiperStage& stage = solution.stages[s];
    stage.suffix = suffix += stage.dp;
    pricer.price(stage);
    solution.time = std::max(solution.time, stage.time);
    if (stage.memory_bytes <= problem.memory_bytes * kAboveRounding) continue;
    solution.status = Status::infeasible;
    if (stage.memory_bytes < solution.needed_bytes) continue;
    solution.needed_bytes = stage.memory_bytes;
    solution.reason = fmt::format(
        "stage {} ({} to {}) of the plan made without regard to memory needs {}, {} more than "
        "there is",
        s + 1, problem.nodes[at(stage.nodes.front())].name,
        problem.nodes[at(stage.nodes.back())].name, format_bytes(stage.memory_bytes),
        format_bytes(stage.memory_bytes - problem.memory_bytes));
  }
}

}  // namespace

PiperSolution solve_pipedream(const PiperProblem& problem, const PiperSearchLimits&) {
  check_flat(problem, "pipedream");
  PiperSolution solution;
  const auto sums = chain_sums(problem);
  if (const auto* without = std::get_if<std::size_t>(&sums)) {
    solution.reason = problem.nodes[*without].name + " has no option without tensor parallelism";
    return solution;
  }
  const auto& chain = std::get<ChainSums>(sums);
  const auto most = static_cast<std::size_t>(std::min(problem.devices, problem.micro_batches));
  const Table table = fill_table(problem, chain, most, solution.work);
  if (table.back()[most].time == kInfinity) {
    solution.reason = "no data-parallel degree that may be used fits the devices and micro-batches";
    return solution;
  }
  solution.stages = stages_of(table, chain.options);
  price(problem, solution);
  if (solution.status == Status::infeasible) {
    solution.stages.clear();
    solution.time = 0;
  }
  return solution;
}

}  // namespace braid
