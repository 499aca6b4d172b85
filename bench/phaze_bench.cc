// Phaze's placement: GPT-like chains of layers on 1024 devices, and the published inputs when
// BRAID_REFERENCE_DIR names the folder that holds them.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/planners/phaze/placement.h"

namespace braid {
namespace {

const PhazeOptions kProgram{.objective = PhazeObjective::program, .branches = false};
const PhazeOptions kFlush{};
const PhazeOptions kSimulated{.objective = PhazeObjective::simulated};

/// An embedding and `layers` equal layers of hidden size 12288 at tensor-parallel widths 4 and 8.
PhazeProblem gpt(std::int32_t layers) {
  PhazeProblem problem;
  problem.devices = 1024;
  problem.memory_bytes = 64.0 * (1 << 30);
  problem.bytes_per_s = 4.0 * (1 << 30);
  problem.micro_batches = 4096;
  problem.recompute = true;
  for (std::int32_t l = 0; l <= layers; ++l) {
    problem.names.push_back(std::to_string(l));
    if (l > 0) problem.edges.emplace_back(l - 1, l);
  }
  for (const std::int32_t tp : {4, 8}) {
    PhazeWidth width;
    width.tp = tp;
    width.edge_bytes.assign(problem.edges.size(), 50e6);
    width.layers.push_back({1e-6, 1e-6, 1.2e9, 50e6, false});
    for (std::int32_t l = 0; l < layers; ++l) {
      width.layers.push_back({0.170 / tp, 0.171 / tp, 3.6e9 / tp, 6.3e9 / tp, true});
    }
    problem.widths.push_back(std::move(width));
  }
  return problem;
}

void Chain(benchmark::State& state, const PhazeOptions& options) {
  const PhazeProblem problem = gpt(static_cast<std::int32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(place_phaze(problem, options));
}
BENCHMARK_CAPTURE(Chain, program, kProgram)
    ->Arg(24)
    ->Arg(96)
    ->Arg(192)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Chain, flush, kFlush)->Arg(24)->Arg(96)->Arg(192)->Unit(benchmark::kMillisecond);

void Published(benchmark::State& state, const PhazeOptions& options, double latency_unit_s) {
  const char* folder = std::getenv("BRAID_REFERENCE_DIR");
  if (folder == nullptr) {
    state.SkipWithError("BRAID_REFERENCE_DIR is not set");
    return;
  }
  std::vector<PhazeProblem> problems;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(folder) / "reference" / "phaze" / "device_placement")) {
    const std::string file = entry.path().string();
    if (!file.ends_with(".in.json")) continue;
    problems.push_back(read_phaze(Document::parse_file(file).root(),
                                  {.latency_unit_s = latency_unit_s, .last_tensor_only = false}));
  }
  for (auto _ : state) {
    for (const PhazeProblem& problem : problems) {
      benchmark::DoNotOptimize(place_phaze(problem, options));
    }
  }
  state.counters["inputs"] = static_cast<double>(problems.size());
}
BENCHMARK_CAPTURE(Published, program, kProgram, 1.0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Published, flush, kFlush, 1e-3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Published, simulated, kSimulated, 1e-3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
