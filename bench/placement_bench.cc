// The search for the cheapest placement: chains and ladders of N operators with 20 candidates each.

#include <random>

#include <benchmark/benchmark.h>

#include "braid/backend/placement/cheapest_placement.h"

namespace braid {
namespace {

/// Candidates of one to four nodes that follow each other at a distance of `step`.
PlacementProblem random_problem(std::int32_t nodes, std::int32_t step,
                                std::vector<double>& costs_s) {
  std::mt19937_64 random(3);
  PlacementProblem problem;
  problem.node_count = nodes;
  for (std::int32_t node = 0; node < nodes; ++node) {
    for (int c = 0; c < 20; ++c) {
      PlacementCandidate candidate;
      const auto length = static_cast<std::int32_t>(c == 0 ? 1 : 1 + random() % 4);
      for (std::int32_t i = 0; i < length && node + i * step < nodes; ++i) {
        candidate.nodes.push_back(node + i * step);
      }
      costs_s.push_back(static_cast<double>(1 + random() % 1000) * 1e-6);
      problem.candidates.push_back(std::move(candidate));
    }
  }
  return problem;
}

void search(benchmark::State& state) {
  std::vector<double> costs_s;
  PlacementProblem problem = random_problem(static_cast<std::int32_t>(state.range(0)),
                                            static_cast<std::int32_t>(state.range(1)), costs_s);
  problem.cost_s = [&](std::size_t candidate) { return costs_s[candidate]; };
  std::int64_t states = 0;
  for (auto _ : state) states = cheapest_placement(problem)->states;
  state.counters["states"] = static_cast<double>(states);
}
BENCHMARK(search)->Args({1000, 1})->Args({1000, 2})->Args({1000, 3})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
