// Piper's planner on the published inputs (github.com/msr-fiddle/piper) where they are present, as
// BRAID_REFERENCE_DIR says or in ../shared beside the project, and on chains of like size.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "braid/base/index.h"
#include "braid/planners/piper/from_profile.h"
#include "braid/planners/piper/table.h"
#include "braid/profile/piper_profile.h"

namespace {

using braid::at;
using braid::PiperProblem;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// `layers` transformer layers with an embedding, as large as BERT's in the paper, each a little
/// different.
PiperProblem chain(int layers) {
  PiperProblem problem;
  for (int v = 0; v < layers; ++v) {
    braid::PiperNode node;
    node.name = "layer " + std::to_string(v);
    for (const int tp : {1, 2, 4, 8}) {
      const double split = tp;
      const double time = (0.0303 + 1e-5 * (v * 7 % 11)) * (1 + 0.1 * (tp - 1)) / split;
      braid::PiperOption keep{"vanilla", time, 177e6 / split, 606e6 / split, 354e6 / split,
                              {},        {},   false};
      braid::PiperOption recompute{
          "activation recomp", time * 4 / 3, 177e6 / split, 48e6, 912e6 / split, {}, {}, true};
      node.degrees.push_back({tp, {keep, recompute}});
    }
    problem.nodes.push_back(node);
    if (v > 0) problem.edges.push_back({v - 1, v, 31e6});
  }
  return problem;
}

PiperProblem load(const std::string& model) {
  const char* folder = std::getenv("BRAID_REFERENCE_DIR");
  const std::string file = (folder != nullptr ? std::string(folder) : "../shared") +
                           "/reference/piper/" + model + ".json";
  if (!std::filesystem::exists(file)) return {};
  const braid::Document document = braid::Document::parse_file(file);
  return braid::piper_from_profile(braid::piper_profile_from_json(document.root()).profile, 1);
}

/// BERT with `layers` transformer layers for the 32 published ones: those in the middle repeated.
PiperProblem bert_of(int layers) {
  const PiperProblem published = load("bert32a100");
  if (published.nodes.empty()) return {};
  std::int32_t first = 0, last = 0;
  for (std::int32_t v = 0; v < static_cast<std::int32_t>(published.nodes.size()); ++v) {
    if (published.nodes[at(v)].name.find("TransformerLayer") == std::string::npos) continue;
    if (first == 0) first = v;
    last = v;
  }
  const std::int32_t more = layers - (last - first + 1);
  PiperProblem made = published;
  // Behind the second layer: copies of what follows it, each with the edges that enter it.
  const std::int32_t place = first + 2;
  const auto moved = [&](std::int32_t v) { return v < place ? v : v + more; };
  made.nodes.assign(published.nodes.begin(), published.nodes.begin() + place);
  for (std::int32_t copy = 0; copy < more; ++copy) {
    made.nodes.push_back(published.nodes[at(place + copy % (last - place))]);
  }
  made.nodes.insert(made.nodes.end(), published.nodes.begin() + place, published.nodes.end());
  made.edges.clear();
  double chain_bytes = 0;
  for (braid::PiperEdge edge : published.edges) {
    if (edge.target == place && edge.source == place - 1) chain_bytes = edge.bytes;
    edge.source = moved(edge.source);
    edge.target = moved(edge.target);
    if (edge.target == moved(place) && edge.source == place - 1) edge.source = place + more - 1;
    made.edges.push_back(edge);
  }
  for (const braid::PiperEdge& edge : published.edges) {
    if (edge.target != place || edge.source == place - 1) continue;
    for (std::int32_t copy = 0; copy < more; ++copy) {
      made.edges.push_back({edge.source, place + copy, edge.bytes});
      for (braid::PiperDegree& degree : made.nodes[at(edge.source)].degrees) {
        for (braid::PiperOption& option : degree.options) {
          if (!option.out_sync_bytes.empty()) {
            option.out_sync_bytes.push_back(option.out_sync_bytes.back());
          }
        }
      }
    }
  }
  for (std::int32_t copy = 0; copy < more; ++copy) {
    made.edges.push_back({place + copy - 1, place + copy, chain_bytes});
  }
  std::sort(made.edges.begin(), made.edges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.source, a.target) < std::pair(b.source, b.target);
  });
  return made;
}

void run(benchmark::State& state, PiperProblem problem, std::int64_t micro_batches) {
  if (problem.nodes.empty()) {
    state.SkipWithError("the published input is not present");
    return;
  }
  problem.devices = state.range(0);
  problem.memory_bytes = static_cast<double>(state.range(1)) / 10 * kGiB;
  problem.bandwidth_bytes = 25 * kGiB;
  problem.micro_batches = micro_batches;
  braid::PiperSolution solution;
  for (auto _ : state) {
    solution = braid::solve_piper(problem);
    benchmark::DoNotOptimize(solution);
  }
  braid::check_piper_problem(problem, "benchmark");
  state.counters["time_per_sample"] = solution.time;
  state.counters["optimal"] = solution.status == braid::Status::optimal ? 1 : 0;
}

// Arguments: devices, tenths of GiB.
void bert(benchmark::State& state) { run(state, load("bert32a100"), 1920); }
BENCHMARK(bert)->ArgsProduct({{512, 2048}, {10, 20, 80, 800}})->Unit(benchmark::kMillisecond);

void bert64(benchmark::State& state) { run(state, bert_of(64), 2048); }
BENCHMARK(bert64)->ArgsProduct({{2048}, {10, 20, 80, 800}})->Unit(benchmark::kMillisecond);

void bert96(benchmark::State& state) { run(state, bert_of(96), 2048); }
BENCHMARK(bert96)->ArgsProduct({{2048}, {20, 80, 800}})->Unit(benchmark::kMillisecond);

void resnet(benchmark::State& state) { run(state, load("resnet"), 7680); }
BENCHMARK(resnet)->ArgsProduct({{8, 128}, {10, 15, 20, 80}})->Unit(benchmark::kMillisecond);

void gnmt(benchmark::State& state) { run(state, load("gnmt"), 256); }
BENCHMARK(gnmt)->ArgsProduct({{2, 4, 8, 16, 32, 64}, {12, 25}})->Unit(benchmark::kMillisecond);

void chain_of_96(benchmark::State& state) { run(state, chain(96), 2048); }
BENCHMARK(chain_of_96)->ArgsProduct({{2048}, {10, 80, 745}})->Unit(benchmark::kMillisecond);

void bert_table(benchmark::State& state) {
  PiperProblem problem = load("bert32a100");
  if (problem.nodes.empty()) {
    state.SkipWithError("the published input is not present");
    return;
  }
  problem.devices = state.range(0);
  problem.memory_bytes = 8 * kGiB;
  problem.bandwidth_bytes = 25 * kGiB;
  problem.micro_batches = 1920;
  for (auto _ : state) {
    braid::PiperTable table = braid::piper_table(problem);
    benchmark::DoNotOptimize(table);
  }
}
BENCHMARK(bert_table)->Arg(128)->Unit(benchmark::kMillisecond);

}  // namespace
