#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "braid/frontend/onnx.h"

#include "onnx_network.h"

namespace braid {
namespace {

void BM_GraphFromOnnx(benchmark::State& state) {
  const std::string bytes = onnx_network(state.range(0) / 4, 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(graph_from_onnx_bytes(bytes, "bench.onnx", {{"batch", 8}}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(BM_GraphFromOnnx)
    ->RangeMultiplier(10)
    ->Range(1000, 1000000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
