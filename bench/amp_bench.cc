// AMP: a GPT-2 of 24 layers with rounded published layer times on 3 nodes of V100s and one of T4s,
// and the published layer assignment problems when BRAID_REFERENCE_DIR names their folder.

#include <cstdlib>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/base/document.h"

#include "papers/amp/placement_search.h"

namespace braid {
namespace {

constexpr double kGbps = 1e9 / 8;
constexpr std::int64_t kBatch = 32;

AmpModel gpt2(int layers) {
  AmpModel model;
  model.degrees = {1, 2, 4};
  model.layers.resize(static_cast<std::size_t>(layers) + 2);
  for (AmpLayer& layer : model.layers) {
    layer.output_elements = 1024.0 * 1024;
    layer.parameters = 12.0 * 1024 * 1024;
    layer.activation_bytes = 10.0 * 1024 * 1024;
    layer.split_activation_bytes = 104.0 * 1024 * 1024;
  }
  for (AmpLayer* ends : {&model.layers.front(), &model.layers.back()}) {
    ends->parameters = 0;
    ends->embedding_parameters = 1024.0 * 52256;
  }
  const double layer_s[2][3] = {{3.9e-3, 5.2e-3, 4.5e-3}, {5.5e-3, 5.95e-3, 5.6e-3}};
  for (const auto& type : layer_s) {
    model.forward_s.emplace_back();
    for (const double time_s : type) {
      std::vector<double> times_s(model.layers.size(), time_s);
      times_s.front() = 0.4e-3;
      times_s.back() = 2.5e-3;
      model.forward_s.back().push_back(times_s);
    }
  }
  return model;
}

/// `nodes` p3.8xlarge and a third as many g4dn.12xlarge.
AmpCluster mixed(std::int32_t nodes) {
  const std::vector<AmpNode> kinds = {{nodes, 4, 0, 170 * kGbps, 10 * kGbps},
                                      {(nodes + 2) / 3, 4, 1, 50 * kGbps, 50 * kGbps}};
  return amp_cluster_of(kinds);
}

/// All strategies in rank order.
void Search(benchmark::State& state) {
  const AmpModel model = gpt2(24);
  const AmpCluster cluster = mixed(static_cast<std::int32_t>(state.range(0)));
  std::vector<AmpChoice> found;
  for (auto _ : state) found = amp_search(model, cluster, kBatch, {});
  state.counters["strategies"] = static_cast<double>(found.size());
  state.counters["best_s"] = found.front().cost_s;
}
BENCHMARK(Search)->Arg(3)->Arg(12)->Unit(benchmark::kMillisecond);

void Anneal(benchmark::State& state) {
  const AmpModel model = gpt2(24);
  const AmpCluster cluster = mixed(3);
  const AmpRules rules;
  std::vector<AmpChoice> found;
  for (auto _ : state) found = amp_anneal(model, cluster, kBatch, rules, {});
  state.counters["best_s"] = found.front().cost_s;
}
BENCHMARK(Anneal)->Unit(benchmark::kMillisecond);

/// All strategies and placements, with a budget of partial placements.
void Place(benchmark::State& state) {
  const AmpModel model = gpt2(24);
  const AmpCluster cluster = mixed(3);
  const auto degrees = amp_degrees(model, cluster, kBatch);
  AmpPlacementResult found;
  for (auto _ : state) {
    found = amp_place(model, cluster, degrees, kBatch, {}, {.most_states = state.range(0)});
  }
  state.counters["best_s"] = found.best->cost_s;
  state.counters["gap_percent"] = 100 * found.gap();
  state.counters["states"] = static_cast<double>(found.states);
}
BENCHMARK(Place)->Arg(1000)->Arg(20'000)->Unit(benchmark::kMillisecond);

void Published(benchmark::State& state) {
  const char* folder = std::getenv("BRAID_REFERENCE_DIR");
  if (folder == nullptr) {
    state.SkipWithError("BRAID_REFERENCE_DIR is not set");
    return;
  }
  const Document document =
      Document::parse_file(std::string(folder) + "/reference/amp/layer_assignment_instances.json");
  std::vector<std::vector<double>> sums;
  std::vector<AssignmentChain> chains;
  const std::vector<Value> instances = document.root().elements();
  sums.reserve(instances.size());
  for (const Value& instance : instances) {
    std::vector<double> times_s;
    for (const Value& time : instance["cost_e"].elements()) times_s.push_back(time.as_double());
    sums.push_back(running_sums(times_s));
    AssignmentChain chain;
    for (std::int64_t i = 0; i < instance["pp"].as_int(); ++i) {
      chain.stages.push_back({sums.back(), {}});
    }
    for (const Value& row : instance["cost_c"].elements()) {
      for (const Value& time : row.elements()) chain.boundary_s.push_back(time.as_double());
    }
    chain.micro_batches = instance["B"].as_int();
    chains.push_back(std::move(chain));
  }
  for (auto _ : state) {
    for (const AssignmentChain& chain : chains) benchmark::DoNotOptimize(assign_layers(chain));
  }
  state.counters["problems"] = static_cast<double>(chains.size());
}
BENCHMARK(Published)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
