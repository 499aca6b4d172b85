// The tables of docs/notes/graphpipe.md: graph pipelines against PipeDream's and Piper's lines of
// stages on the same estimator and simulator. Argument: the table (planners, branches, case-study,
// orders, large); all without one.

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/plan/stage_rounds.h"
#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/graphpipe/search.h"
#include "braid/planners/registry.h"

#include "graphpipe_models.h"
#include "planners/graphpipe_iteration.h"

namespace braid {
namespace {

constexpr double kGb = 1e9;

double ms_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) * 1e3 / CLOCKS_PER_SEC;
}

/// The best plan of a planner over all micro-batch sizes, and how long all its searches took.
struct Found {
  std::optional<Candidate> best;
  double search_ms = 0;
};

void plan_with(const PlannerEntry& planner, const Job& job, const System& system,
               const GraphPipeSpace& space, Found& found) {
  Outcome outcome = planner.plan(job, system, space, {}, {});
  for (Candidate& candidate : outcome.candidates) {
    if (found.best.has_value() &&
        found.best->metrics.iteration_time_s <= candidate.metrics.iteration_time_s) {
      continue;
    }
    found.best = std::move(candidate);
  }
}

constexpr std::string_view kThesisSpace = "graphpipe, data";

/// graphpipe, with all its options or those of the thesis, tries sizes by itself; the others are
/// told each power of two.
Found find(std::string_view name, const Job& job, const System& system) {
  constexpr int kMostSamples = 4096;
  const bool thesis = name == kThesisSpace;
  const PlannerEntry& planner = find_planner(thesis ? "graphpipe" : std::string(name));
  Found found;
  const std::clock_t start = std::clock();
  if (thesis || name == "graphpipe") {
    GraphPipeSpace space;
    if (thesis) space.stage_options = StageOptions::data;
    plan_with(planner, job, system, space, found);
  } else {
    for (int samples = 1; samples <= std::min<std::int64_t>(job.global_batch, kMostSamples);
         samples *= 2) {
      GraphPipeSpace space;
      space.micro_batch = samples;
      plan_with(planner, job, system, space, found);
    }
  }
  found.search_ms = ms_since(start);
  return found;
}

std::string range_text(std::int64_t least, std::int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{}-{}", least, most);
}

double activation_bytes(const Plan& plan) {
  double bytes = 0;
  for (const MemoryBreakdown& memory : memory_of_stages(plan)) {
    bytes = std::max(bytes, memory.activations);
  }
  return bytes;
}

std::string cells(const Found& found, const Job& job) {
  if (!found.best.has_value()) return fmt::format("no plan | | | | | {:.0f} |", found.search_ms);
  const Plan& plan = found.best->plan;
  const std::vector<int> depths =
      stage_depths(static_cast<int>(plan.stages.size()), chunk_edges(plan));
  const std::vector<StageRounds> rounds = stage_rounds(plan);
  const auto [least, most] =
      std::minmax_element(rounds.begin(), rounds.end(),
                          [](const auto& a, const auto& b) { return a.samples < b.samples; });
  return fmt::format("{:.0f} | {} | {} | {} | {:.2f} | {:.0f} |",
                     static_cast<double>(job.global_batch) / found.best->metrics.iteration_time_s,
                     plan.stages.size(), *std::max_element(depths.begin(), depths.end()),
                     range_text(least->samples, most->samples), activation_bytes(plan) / kGb,
                     found.search_ms);
}

void heading() {
  fmt::print(
      "| model | V100 | planner | samples/s | stages | depth | micro-batch | activations GB | "
      "search ms | graphpipe is faster by |\n|---|---|---|---|---|---|---|---|---|---|\n");
}

void compare(const std::string& name, const Graph& graph, std::int64_t devices, std::int64_t batch,
             const std::vector<std::string_view>& planners) {
  const Job job = thesis_job(graph, batch);
  const System system = thesis_system(devices);
  double graphpipe_s = 0;
  for (const std::string_view planner : planners) {
    const Found found = find(planner, job, system);
    const double time_s = found.best.has_value() ? found.best->metrics.iteration_time_s : 0;
    if (graphpipe_s == 0) graphpipe_s = time_s;
    const std::string ratio = time_s > 0 ? fmt::format("{:.2f}", time_s / graphpipe_s) : "";
    fmt::print("| {} | {} | {} | {} {} |\n", name, devices, planner, cells(found, job), ratio);
    std::fflush(stdout);
  }
}

void planners_table() {
  heading();
  for (const ThesisModel& model : kThesisModels) {
    const Graph graph = load_model(model.name, {});
    for (std::int64_t devices = 4; devices <= 32; devices *= 2) {
      compare(model.name, graph, devices, model.batch * devices / 4,
              {"graphpipe", kThesisSpace, "pipedream", "piper"});
    }
  }
}

void branches_table() {
  const std::vector<std::string_view> planners = {"graphpipe", "pipedream", "piper"};
  heading();
  for (const std::int64_t devices : {8, 32}) {
    for (const int branches : {2, 4}) {
      compare(fmt::format("multi-modal, {} branches", branches), multi_modal(branches, 8), devices,
              16 * devices, planners);
    }
    for (const int branches : {7, 8}) {
      compare(fmt::format("candle, {} branches", branches), candle(branches), devices,
              1024 * devices, planners);
    }
  }
  for (int branches = 2; branches <= 16; branches *= 2) {
    compare(fmt::format("candle, {} branches", branches), candle(branches), 16, 16'384, planners);
  }
}

/// Two branches of four blocks on eight devices, a stage on each.
void case_study_table() {
  const Graph graph = multi_modal(2, 4);
  GraphPipeSpace space;
  space.stage_options = StageOptions::data;
  GraphPipeProblem problem = thesis_problem_of(graph, 8, 128, space);
  problem.in_flight = InFlight::table;
  problem.most_stage_devices = 1;
  problem.pools.front().memory_bytes = 1e15;
  fmt::print(
      "| micro-batch | stages | depth | fullest device GB | samples/s | line: stages | depth | "
      "fullest device GB | samples/s |\n|---|---|---|---|---|---|---|---|---|\n");
  for (std::int64_t samples = 1; samples <= 8; samples *= 2) {
    problem.groups = {{samples, 1}};
    std::string row;
    for (const GraphPipeProblem& ordered : {problem, linear_graphpipe(problem)}) {
      GraphPipeSolution plan = solve_graphpipe(ordered);
      double bytes = 0;
      for (const GraphPipeStage& stage : plan.stages) bytes = std::max(bytes, stage.memory_bytes);
      row += fmt::format(
          " {} | {} | {:.2f} | {:.1f} |", plan.stages.size(), plan.depth(), bytes / kGb,
          static_cast<double>(problem.batch) / test::graphpipe_iteration_s(ordered, plan));
    }
    fmt::print("| {} |{}\n", samples, row);
  }
}

/// Plans of 1F1B against those that try the greedy order of passes too, in the thesis' space.
void orders_table() {
  fmt::print(
      "| model | V100 | 1F1B: samples/s | in flight | activations GB | search ms | greedy tried: "
      "samples/s | in flight | activations GB | search ms | what the planner says |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  const PlannerEntry& planner = find_planner("graphpipe");
  for (const ThesisModel& model : kThesisModels) {
    const Graph graph = load_model(model.name, {});
    for (std::int64_t devices = 4; devices <= 32; devices *= 2) {
      const Job job = thesis_job(graph, model.batch * devices / 4);
      std::string row = fmt::format("| {} | {} |", model.name, devices);
      for (const bool greedy : {false, true}) {
        GraphPipeSpace space;
        space.greedy_orders = greedy;
        space.stage_options = StageOptions::data;
        const std::clock_t start = std::clock();
        const Outcome outcome = planner.plan(job, thesis_system(devices), space, {}, {});
        const double search_ms = ms_since(start);
        const Candidate& best = outcome.candidates.at(0);
        const std::vector<std::int64_t> held = micro_batches_held(best.plan);
        const auto [least, most] = std::minmax_element(held.begin(), held.end());
        row += fmt::format(" {:.0f} | {} | {:.2f} | {:.0f} |",
                           static_cast<double>(job.global_batch) / best.metrics.iteration_time_s,
                           range_text(*least, *most), activation_bytes(best.plan) / kGb, search_ms);
        if (greedy) row += " " + outcome.assumptions.back() + " |";
      }
      fmt::print("{}\n", row);
      std::fflush(stdout);
    }
  }
}

/// 64 branches of 64 operators on 1,024 devices.
void large_case() {
  GraphPipeProblem problem;
  problem.device_samples = {1, 2, 4, 8, 16};
  problem.batch = 4096;
  problem.pools.front().devices = 1024;
  problem.pools.front().devices_per_node = 4;
  problem.pools.front().memory_bytes = 16e9;
  problem.pools.front().bandwidth_bytes_per_s = 3e9;
  problem.pools.front().node_bandwidth_bytes_per_s = 20e9;
  problem.groups = {{1, 1}, {4, 1}, {16, 1}, {64, 1}, {256, 1}, {1024, 1}};
  for (int kind = 0; kind < 4; ++kind) {
    GraphPipeCost cost;
    for (const std::int64_t samples : problem.device_samples) {
      cost.forward_s.push_back(1e-5 + 1e-4 * (kind + 1) * static_cast<double>(samples));
      cost.backward_s.push_back(2 * cost.forward_s.back());
    }
    cost.fixed_bytes = 64e6;
    cost.gradient_bytes = 16e6;
    cost.stash_bytes = 4e6;
    problem.kinds.push_back({cost});
  }
  constexpr int kBranches = 64;
  constexpr int kLength = 64;
  constexpr std::int32_t kJoin = kBranches * kLength;
  for (std::int32_t v = 0; v <= kJoin; ++v) {
    problem.nodes.push_back(v % kLength % 4);
    if (v < kJoin) problem.edges.push_back({v, v % kLength == kLength - 1 ? kJoin : v + 1, 1e6});
  }
  const std::clock_t start = std::clock();
  const GraphPipeSolution plan = solve_graphpipe(problem);
  fmt::print("64 branches of 64 operators, 1024 devices: {} stages, depth {}, {:.0f} ms\n",
             plan.stages.size(), plan.depth(), ms_since(start));
}

int print(std::string_view table) {
  if (table.empty() || table == "planners") planners_table();
  if (table.empty() || table == "branches") branches_table();
  if (table.empty() || table == "case-study") case_study_table();
  if (table.empty() || table == "orders") orders_table();
  if (table.empty() || table == "large") large_case();
  return 0;
}

}  // namespace
}  // namespace braid

int main(int count, char** arguments) {
  try {
    return braid::print(count > 1 ? arguments[1] : "");
  } catch (const braid::Error& error) {
    fmt::print(stderr, "graphpipe_cases: {}\n", error.what());
    return 1;
  }
}
