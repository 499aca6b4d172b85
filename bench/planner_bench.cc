// Whole searches of the planner `braid`: how they grow with devices and layers.

#include <string>

#include <benchmark/benchmark.h>

#include "braid/frontend/model.h"
#include "braid/planners/planner.h"
#include "braid/system/system.h"

namespace braid {
namespace {

Outcome plan(const Graph& graph, const System& system, std::int64_t global_batch) {
  Job job;
  job.graph = &graph;
  job.global_batch = global_batch;
  SpaceOptions space;
  return plan_braid(job, system, space, {}, {});
}

void report(benchmark::State& state, const Outcome& outcome) {
  state.counters["bounded"] = static_cast<double>(outcome.work);
  state.counters["assessed"] = static_cast<double>(outcome.evaluated);
  state.counters["iteration_s"] = outcome.objective;
}

/// From the config text to the plan: Llama-3-405B, global batch 2048, 8k tokens, 16,384 H100.
void Llama405B(benchmark::State& state) {
  Outcome outcome;
  for (auto _ : state) {
    const Graph graph = load_model("llama-3-405b", {.seq_len = 8192, .dims = {}});
    outcome = plan(graph, load_system("dgx-h100:16384"), 2048);
  }
  report(state, outcome);
}
BENCHMARK(Llama405B)->Unit(benchmark::kMillisecond);

/// Llama-3-70B, global batch 4096 … on ever more devices.
void Devices(benchmark::State& state) {
  const Graph graph = load_model("llama-3-70b", {.seq_len = 8192, .dims = {}});
  const System system = load_system("dgx-h100:" + std::to_string(state.range(0)));
  Outcome outcome;
  for (auto _ : state) outcome = plan(graph, system, std::max<std::int64_t>(1024, state.range(0)));
  report(state, outcome);
}
BENCHMARK(Devices)->RangeMultiplier(4)->Range(8, 131072)->Unit(benchmark::kMillisecond);

/// The first blocks of a Llama-3-8B, repeated or cut to a number of layers.
void Layers(benchmark::State& state) {
  Graph graph = load_model("llama-3-8b", {.seq_len = 8192, .dims = {}});
  const auto layers = static_cast<std::size_t>(state.range(0));
  // The planner reads operators through kinds, so only the list of layers decides the depth.
  const Layer block = graph.layers[1];
  const Layer head = graph.layers.back();
  graph.layers.assign(1, graph.layers.front());
  for (std::size_t l = 0; l < layers; ++l) graph.layers.push_back(block);
  graph.layers.push_back(head);
  const System system = load_system("dgx-h100:64");
  Outcome outcome;
  for (auto _ : state) outcome = plan(graph, system, 512);
  report(state, outcome);
}
BENCHMARK(Layers)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
