// How long it takes to schedule the operators of a layer on the cores of a chip, with made-up
// rates. `gap_percent` is what is not proven, `work` the starts of operators tried.
#include <set>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/chip/cores/schedule_cores.h"
#include "braid/frontend/model.h"
#include "braid/graph/graph.h"
#include "braid/graph/training.h"

#include "chip/cores/layer_problem.h"
#include "chip/cores/traced_layer.h"

namespace braid {
namespace {

struct BenchLayer {
  std::string model;  ///< Of the zoo; empty: the traced layer.
  std::set<std::string> layers;
  bool weights = true;  ///< With gradients of weights and the optimizer.
};

const std::vector<BenchLayer>& bench_layers() {
  static const std::vector<BenchLayer> layers = {
      {"", {"layer"}, false},
      {"", {"layer"}, true},
      {"bert-large", {"block10"}, true},
      {"llama-3-8b", {"block1"}, true},
      {"mixtral-8x7b", {"block1"}, true},
      {"deepseek-v3", {"block1"}, true},
      {"bert-large", {"block10", "block11", "block12"}, true},
  };
  return layers;
}

const std::vector<CoreCounts>& bench_chips() {
  static const std::vector<CoreCounts> chips = {{1, 1024}, {2, 512}, {4, 1024}, {8, 2},
                                                {1, 1},    {2, 2},   {4, 4},    {64, 64}};
  return chips;
}

CoreProblem bench_problem(const BenchLayer& layer, const CoreCounts& cores) {
  ModelOptions options;
  options.seq_len = 512;
  const Graph training = training_graph(layer.model.empty() ? TracedLayer(4, 512, 1024, 16).graph()
                                                            : load_model(layer.model, options));
  const CoreProblem problem =
      layer_problem(training, layer.layers, {.cores = cores, .bytes_per_s = 4e12});
  return layer.weights ? problem : without_weight_gradients(training, problem);
}

/// Which layer, which chip, the rule, thousands of starts to try at most.
void schedule_layer(benchmark::State& state) {
  const BenchLayer& layer = bench_layers()[static_cast<std::size_t>(state.range(0))];
  const CoreCounts& cores = bench_chips()[static_cast<std::size_t>(state.range(1))];
  CoreProblem problem = bench_problem(layer, cores);
  problem.rule = state.range(2) == 0 ? AllCoresRule::alone : AllCoresRule::own_kind;
  CoreOutcome outcome;
  for (auto _ : state) outcome = schedule_cores(problem, 1000 * state.range(3));
  state.SetLabel((layer.model.empty() ? "traced" : layer.model) +
                 (layer.weights ? "" : " without weights") + " on " + std::to_string(cores.tensor) +
                 "+" + std::to_string(cores.vector));
  const CoreOutcome list = schedule_cores(problem, 0);
  state.counters["operators"] = static_cast<double>(problem.operators.size());
  state.counters["gap_percent"] = 100 * outcome.gap();
  state.counters["list_percent"] =
      100 * (list.schedule.makespan_s / outcome.schedule.makespan_s - 1);
  state.counters["work"] = static_cast<double>(outcome.work);
}

BENCHMARK(schedule_layer)
    ->ArgsProduct(
        {benchmark::CreateDenseRange(0, 6, 1), benchmark::CreateDenseRange(0, 7, 1), {0, 1}, {300}})
    ->ArgNames({"layer", "chip", "rule", "kwork"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
