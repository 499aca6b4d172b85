// The accelerator template: Phaze's 29,360 architectures, and area, energy and price of each.

#include <benchmark/benchmark.h>

#include "braid/chip/accelerator/architectures.h"
#include "braid/chip/accelerator/energy.h"
#include "braid/chip/accelerator/price.h"

namespace braid {
namespace {

void enumerate(benchmark::State& state) {
  std::size_t count = 0;
  for (auto _ : state) {
    count = architectures(ArchitectureSpace{}).size();
    benchmark::DoNotOptimize(count);
  }
  state.counters["architectures"] = static_cast<double>(count);
}
BENCHMARK(enumerate)->Unit(benchmark::kMicrosecond);

void cost_of_all(benchmark::State& state) {
  const std::vector<Architecture> all = architectures(ArchitectureSpace{});
  Accelerator rest;
  rest.hbm_bytes = 32 * 0x1p30;
  rest.hbm_bytes_per_s = 268.8e9;
  for (auto _ : state) {
    double sum = 0;
    for (const Architecture& one : all) {
      const Accelerator chip = accelerator_of(one, rest);
      sum += peak_power_w(chip, EnergyFigures{}) + chip_price(chip, PriceFigures{}).total_usd();
    }
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(cost_of_all)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
