#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/system/collective.h"
#include "braid/system/links.h"

namespace braid {
namespace {

/// One closed form, as planners ask for it millions of times.
void all_reduce(benchmark::State& state, const char* cluster) {
  const System system = load_system(cluster);
  const GroupSpan span = span_of(system, 1, system.device_count);
  double bytes = 1e6;
  for (auto _ : state) {
    benchmark::DoNotOptimize(collective_time(Collective::all_reduce, bytes, span, system));
    bytes = bytes < 1e9 ? bytes * 1.5 : 1e6;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(all_reduce, node, "dgx-h100:8");
BENCHMARK_CAPTURE(all_reduce, cluster, "dgx-h100:16384");
BENCHMARK_CAPTURE(all_reduce, torus, "tpu-v5p-pod:8960");

void span(benchmark::State& state) {
  const System system = load_system("dgx-h100:16384");
  std::int64_t stride = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(span_of(system, stride, 16384 / stride));
    stride = stride < 1024 ? stride * 2 : 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(span);

void message(benchmark::State& state) {
  const System system = load_system("p3.8xlarge:3nodes+g4dn.12xlarge:1nodes");
  std::int64_t to = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(message_s(system, 5, to, 1e6, 4));
    to = (to + 1) % system.device_count;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message);

/// Data-parallel rings over all devices of a mixed cluster, one ring for each slot of the nodes.
void concurrent_rings(benchmark::State& state) {
  const auto nodes = state.range(0);
  const System system = load_system("p3.8xlarge:" + std::to_string(nodes) +
                                    "nodes+g4dn.12xlarge:" + std::to_string(nodes) + "nodes");
  std::vector<std::vector<std::int64_t>> rings(4);
  for (std::int64_t d = 0; d < system.device_count; ++d) {
    rings[static_cast<std::size_t>(d % 4)].push_back(d);
  }
  for (auto _ : state) benchmark::DoNotOptimize(ring_all_reduce_s(system, rings, 1e9));
  state.SetComplexityN(system.device_count);
}
BENCHMARK(concurrent_rings)->RangeMultiplier(4)->Range(1, 1024)->Complexity();

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load_system("dgx-h100:64"));
}
BENCHMARK(load);

}  // namespace
}  // namespace braid
