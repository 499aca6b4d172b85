#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/base/document.h"
#include "braid/graph/downsets.h"
#include "braid/graph/graph.h"
#include "braid/graph/graph_json.h"
#include "braid/graph/layering.h"
#include "braid/graph/repeated_layers.h"
#include "braid/graph/series_parallel_order.h"
#include "braid/graph/training.h"

namespace braid {
namespace {

/// A residual chain: blocks of a normalisation, two products with an activation between, and a sum.
Graph residual_chain(std::int64_t operators) {
  constexpr std::int64_t rows = 4096;
  constexpr std::int64_t width = 1024;
  Graph graph;
  const auto tensor = [&](std::vector<std::int64_t> dims, bool parameter) {
    graph.tensors.push_back({.name = "t" + std::to_string(graph.tensors.size()),
                             .dims = std::move(dims),
                             .is_parameter = parameter});
    return static_cast<TensorId>(graph.tensors.size() - 1);
  };
  const auto add = [&](OperatorKind kind, std::vector<TensorId> inputs) {
    const TensorId output = tensor({rows, width}, false);
    graph.tensors.back().producer = static_cast<OperatorId>(graph.operators.size());
    graph.operators.push_back({.name = "op" + std::to_string(graph.operators.size()),
                               .kind = std::move(kind),
                               .inputs = std::move(inputs),
                               .outputs = {output}});
    return output;
  };
  const MatMul product{.m = rows, .n = width, .k = width};
  TensorId x = tensor({rows, width}, false);
  graph.inputs = {x};
  while (static_cast<std::int64_t>(graph.operators.size()) + 5 <= operators) {
    TensorId y =
        add(Normalization{.elements = rows * width, .width = width}, {x, tensor({width}, true)});
    y = add(product, {y, tensor({width, width}, true)});
    y = add(Elementwise{.elements = rows * width}, {y});
    y = add(product, {y, tensor({width, width}, true)});
    x = add(Elementwise{.elements = rows * width, .keeps = Elementwise::Keeps::nothing}, {y, x});
  }
  graph.outputs = {x};
  group_into_layers(graph);
  return graph;
}

void operators_range(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(10)->Range(10'000, 1'000'000)->Unit(benchmark::kMillisecond);
}

void group_layers(benchmark::State& state) {
  Graph graph = residual_chain(state.range(0));
  for (auto _ : state) group_into_layers(graph);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(group_layers)->Apply(operators_range);

void repeated_layers(benchmark::State& state) {
  Graph graph = residual_chain(state.range(0));
  for (auto _ : state) find_repeated_layers(graph);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(repeated_layers)->Apply(operators_range);

void training(benchmark::State& state) {
  const Graph graph = residual_chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(training_graph(graph));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(training)->Apply(operators_range);

void write_json(benchmark::State& state) {
  const Graph graph = residual_chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(to_json_text(graph));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(write_json)->Apply(operators_range);

void read_json(benchmark::State& state) {
  const std::string text = to_json_text(residual_chain(state.range(0)));
  for (auto _ : state) {
    const Document document = Document::parse(text, Document::Syntax::json, "bench.json");
    benchmark::DoNotOptimize(graph_from_json(document.root()));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_json)->Apply(operators_range);

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

/// Chains side by side have (length + 1)^chains downsets.
void downsets_of_chains(benchmark::State& state) {
  const auto chains = static_cast<std::int32_t>(state.range(0));
  const auto length = static_cast<std::int32_t>(state.range(1));
  Edges edges;
  for (std::int32_t chain = 0; chain < chains; ++chain) {
    for (std::int32_t i = 1; i < length; ++i) {
      edges.emplace_back(chain * length + i - 1, chain * length + i);
    }
  }
  const Dag dag = make_dag(static_cast<std::size_t>(chains * length), edges);
  std::size_t found = 0;
  for (auto _ : state) found = downsets(dag, std::size_t{1} << 24)->size();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(found));
}
BENCHMARK(downsets_of_chains)
    ->Args({2, 30})
    ->Args({3, 20})
    ->Args({4, 30})
    ->Unit(benchmark::kMillisecond);

/// A ladder of diamonds.
void series_parallel_diamonds(benchmark::State& state) {
  Edges edges;
  std::int32_t last = 0;
  while (static_cast<std::int64_t>(edges.size()) < state.range(0)) {
    for (const std::int32_t side : {last + 1, last + 2}) {
      edges.emplace_back(last, side);
      edges.emplace_back(side, last + 3);
    }
    last += 3;
  }
  const Dag dag = make_dag(static_cast<std::size_t>(last) + 1, edges);
  for (auto _ : state) benchmark::DoNotOptimize(series_parallel_order(dag).cuts);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(series_parallel_diamonds)->Arg(1000)->Arg(10'000);

}  // namespace
}  // namespace braid
