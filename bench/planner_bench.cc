// Whole searches of the planner `braid`: how they grow with devices and layers.

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/base/document.h"
#include "braid/frontend/hugging_face.h"
#include "braid/frontend/model.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"
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
  // Configurations for which time and memory were found, over the whole search.
  state.counters["assessed_per_s"] = benchmark::Counter(
      static_cast<double>(outcome.evaluated * state.iterations()), benchmark::Counter::kIsRate);
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

/// Llama-3-8B with another number of blocks.
Graph llama_8b(std::int64_t layers) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192, "num_hidden_layers": )" +
                             std::to_string(layers) + "}";
  const Document document = Document::parse(config, Document::Syntax::json, "llama");
  return graph_from_config(document.root(), "llama", {.seq_len = 8192, .dims = {}});
}

void Layers(benchmark::State& state) {
  const Graph graph = llama_8b(state.range(0));
  const System system = load_system("dgx-h100:64");
  Outcome outcome;
  for (auto _ : state) outcome = plan(graph, system, 512);
  report(state, outcome);
}
BENCHMARK(Layers)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

/// Megatron's 1T model on 4,096 A100, global batch 4096, as Calculon (Isaev et al. 2023) searches
/// it: best first, and every configuration. Argument: the context parallel degree, 0 for any.
void OneTrillion(benchmark::State& state, const PlanFunction& planner) {
  const Graph graph = load_model("megatron-1t", {.seq_len = 2048, .dims = {}});
  System system = load_system("dgx-a100:4096");
  // Room and bandwidth to offload to, as Calculon's system has.
  system.groups.front().chip.host = Memory{"host", 512e9, 100e9};
  Job job;
  job.graph = &graph;
  job.global_batch = 4096;
  SpaceOptions space;
  if (state.range(0) > 0) space.cp = static_cast<int>(state.range(0));
  Outcome outcome;
  for (auto _ : state) outcome = planner(job, system, space, {}, {});
  report(state, outcome);
}
BENCHMARK_CAPTURE(OneTrillion, best_first, plan_braid)
    ->Arg(1)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(OneTrillion, exhaustive, plan_exhaustively)
    ->Arg(1)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond);

/// Memory and simulated time of one configuration of the 1T model, layer costs known: a full
/// evaluation. Many take turns whose layers differ a little in speed, so that none finds the passes
/// of one before it.
void Evaluate(benchmark::State& state, ScheduleKind schedule) {
  const Graph graph = load_model("megatron-1t", {.seq_len = 2048, .dims = {}});
  const System system = load_system("dgx-a100:4096");
  Job job;
  job.graph = &graph;
  job.global_batch = 4096;
  Configuration configuration;
  configuration.tp = 8;
  configuration.pp = static_cast<int>(state.range(0));
  configuration.vp = static_cast<int>(state.range(1));
  configuration.dp = 512 / configuration.pp;
  configuration.num_micro_batches = 4096 / configuration.dp;
  configuration.sequence_parallel = true;
  configuration.schedule = schedule;
  configuration.recompute = Recompute::selective;
  configuration.zero = Zero::optimizer;
  const ChainJob chain = chain_job(job, system);
  LayerTables tables(job, system);
  const LayerTable& table = tables.at(configuration);
  const Ends ends = *partition_min_max(table.chain, configuration.pp * configuration.vp);
  std::vector<Layout> layouts(64);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    std::vector<LayerCost> kinds(table.kinds.begin(), table.kinds.end());
    for (LayerCost& cost : kinds) cost.forward.compute_s *= 1 + 1e-3 * static_cast<double>(i);
    fill_layout(chain.kind_of_layer, kinds, configuration.pp, configuration.vp, ends, layouts[i]);
  }
  Evaluator evaluator(chain);
  std::size_t turn = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.memory(configuration, layouts[turn]));
    benchmark::DoNotOptimize(evaluator.time_s(configuration, layouts[turn]));
    turn = (turn + 1) % layouts.size();
  }
  state.counters["evaluations"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(Evaluate, one_f_one_b, ScheduleKind::one_f_one_b)
    ->Args({4, 1})
    ->Args({8, 1})
    ->Args({16, 1})
    ->Args({64, 1});
BENCHMARK_CAPTURE(Evaluate, interleaved, ScheduleKind::interleaved)
    ->Args({4, 2})
    ->Args({8, 4})
    ->Args({16, 8});

}  // namespace
}  // namespace braid
