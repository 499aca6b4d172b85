// Mapping GEMMs of transformers onto the systolic cores of Phaze's architectures: one thread,
// nothing remembered between mappings. `gap` is the mean gap to a bound of any mapping, `proven`
// the share that meets it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "braid/chip/systolic/nest_mapper.h"

namespace braid {
namespace {

/// Forward, input-gradient and weight-gradient GEMMs of BERT-Large, GPT-2 and Llama-2-7B, and the
/// batched ones of their attention.
std::vector<LoopNest> transformer_nests() {
  std::vector<LoopNest> nests;
  const auto add = [&](std::int64_t rows, std::int64_t in, std::int64_t out) {
    nests.push_back(gemm_nest(rows, out, in));
    nests.push_back(gemm_nest(rows, in, out));
    nests.push_back(gemm_nest(in, out, rows));
  };
  for (const std::int64_t rows : {2048, 4096}) {
    add(rows, 1024, 1024), add(rows, 1024, 4096), add(rows, 4096, 1024);
    add(rows, 1600, 4800), add(rows, 1600, 6400), add(rows, 4096, 11008), add(rows, 4096, 32000);
  }
  for (const std::int64_t length : {512, 2048}) {
    for (const std::int64_t heads : {16, 128}) {
      nests.push_back(gemm_nest(length, length, 64, heads));
      nests.push_back(gemm_nest(length, 64, length, heads));
      nests.push_back(gemm_nest(length, length, 128, heads));
    }
  }
  return nests;
}

/// Words a cycle that keep an array busy whatever stays in it: a word for each row, and for each
/// column one in and one out.
double edge_words_per_cycle(const SystolicArray& array) {
  return static_cast<double>(array.rows + 2 * array.columns);
}

/// Phaze's shapes of arrays, counts of cores and global buffers (notes of its Table 1), with its
/// rules of L2 and, unless `published`, rates at which the array's edges are fed.
std::vector<SystolicMachine> architectures(bool published) {
  std::vector<SystolicMachine> machines;
  for (std::int64_t width = 256; width >= 4; width /= 2) {
    for (const std::int64_t depth : {width, std::max<std::int64_t>(4, width / 4)}) {
      for (std::int64_t cores = 1; cores * width * depth <= 131072 && cores <= 4096; cores *= 2) {
        for (const double megabytes : {2.0, 8.0, 32.0, 128.0}) {
          SystolicMachine machine{
              .cores = cores, .array = {.rows = depth, .columns = width}, .buffers = {}};
          machine.array.words_per_cycle = published ? 64 : edge_words_per_cycle(machine.array);
          machine.buffers = {
              .l2_words = static_cast<double>(std::max<std::int64_t>(1024, width * depth * 16)) / 2,
              .l2_per_operand = true,
              .global_words = megabytes * 1048576 / 2,
              .global_words_per_cycle = published ? 256.0 : 4096.0,
              .hbm_words_per_cycle = published ? 128.0 : 571.0};
          machines.push_back(machine);
        }
      }
    }
  }
  return machines;
}

void Map(benchmark::State& state, bool published) {
  const std::vector<LoopNest> nests = transformer_nests();
  const std::vector<SystolicMachine> machines = architectures(published);
  double gaps = 0, proven = 0;
  std::int64_t mapped = 0;
  for (auto _ : state) {
    for (const SystolicMachine& machine : machines) {
      for (const LoopNest& nest : nests) {
        const MappedNest found = map_nest(nest, machine);
        gaps += found.gap();
        proven += found.gap() < 1e-9 ? 1 : 0;
        ++mapped;
      }
    }
  }
  state.SetItemsProcessed(mapped);
  state.counters["nests"] = static_cast<double>(nests.size());
  state.counters["machines"] = static_cast<double>(machines.size());
  state.counters["gap"] = gaps / static_cast<double>(mapped);
  state.counters["proven"] = proven / static_cast<double>(mapped);
}
BENCHMARK_CAPTURE(Map, fed_edges, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Map, published_rates, true)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
