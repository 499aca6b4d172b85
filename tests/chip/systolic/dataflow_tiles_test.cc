#include <gtest/gtest.h>

#include "braid/chip/dataflow_chip.h"
#include "braid/chip/systolic/nest_mapper.h"
#include "braid/chip/systolic/nest_terms.h"
#include "braid/chip/tile_curve.h"

namespace braid {
namespace {

/// DFModel has a tile hold its outputs while k streams, and says nothing of filling and draining:
/// with one core for each of its tiles, and nothing else in the way, array and tile take as long.
/// Where folds do not divide evenly the mapper may split k or hold another operand, and be faster.
TEST(DataflowTiles, TakeAsLongAsTheArray) {
  const DataflowChip chip{.tiles = 16, .lanes = 32, .stages = 16};
  SystolicMachine machine{.cores = 16,
                          .array = {.rows = 32, .columns = 16, .flows = 1 << 2},
                          .buffers = {.l2_words = 1e6, .global_words = 1e9}};
  for (const std::int64_t m : {64, 256, 1024, 100, 777}) {
    for (const std::int64_t n : {32, 512, 90}) {
      const std::int64_t k = 256;
      const ChipKernel kernel{.name = "gemm", .rows = m, .depth = k, .columns = n};
      const double tiles = tile_curve(kernel, chip).back().cycles;
      const double passes =
          map_nest(gemm_nest(m, n, k), machine).cost.array_cycles - fill_cycles(machine.array);
      EXPECT_LE(passes, tiles) << m << " x " << n;
      if (m % 32 == 0 && n % 16 == 0 && m * n >= 16 * 32 * 16) {
        EXPECT_EQ(passes, tiles) << m << " x " << n;
      }
    }
  }
}

}  // namespace
}  // namespace braid
