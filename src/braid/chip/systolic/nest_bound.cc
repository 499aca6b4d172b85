#include "braid/chip/systolic/nest_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/chip/systolic/nest_mapping.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

struct Tiling {
  const LoopNest& nest;
  double words;
  std::array<std::int64_t, 3> sizes;
};

bool fits(const Tiling& tiling, const std::array<std::int64_t, 3>& tile) {
  double words = 0;
  for (int operand = 0; operand < kNestDims; ++operand) {
    words += tile_words(
        tiling.nest, static_cast<NestOperand>(operand),
        {static_cast<double>(tile[0]), static_cast<double>(tile[1]), static_cast<double>(tile[2])});
  }
  return words <= tiling.words;
}

/// Words with the operand `stays` in place while its dimension turns innermost.
double tiled_words(const Tiling& tiling, const std::array<std::int64_t, 3>& tile, int stays) {
  std::array<std::int64_t, 3> pieces{};
  for (std::size_t d = 0; d < 3; ++d) pieces[d] = quotient_up(tiling.sizes[d], tile[d]);
  double words = 0;
  for (int d = 0; d < kNestDims; ++d) {
    const auto operand = static_cast<NestOperand>(d);
    words += passed_words(swept_words(tiling.nest, operand, pieces),
                          d == stays ? 1 : static_cast<double>(pieces[at(d)]),
                          operand == NestOperand::output);
  }
  return words;
}

/// The largest tile along `d` that fits, or 0.
std::int64_t largest_tile(const Tiling& tiling, std::array<std::int64_t, 3> tile, int d) {
  return first_where(std::int64_t{1}, tiling.sizes[at(d)] + 1,
                     [&](std::int64_t size) {
                       tile[at(d)] = size;
                       return !fits(tiling, tile);
                     }) -
         1;
}

/// Smaller tiles that make one piece more, down to 0.
std::int64_t next_smaller_tile(std::int64_t size, std::int64_t tile) {
  return tile == 1 ? 0 : quotient_up(size, quotient_up(size, tile - 1));
}

/// The second term of least_words().
double reused_words(double macs, double words) { return 2 * macs / std::sqrt(words) - 2 * words; }

}  // namespace

double least_words(const LoopNest& nest, double words) {
  const double once = compulsory_words(nest);
  if (nest.window.used || !(words > 0)) return once;
  return std::max(once, reused_words(nest_macs(nest), words));
}

double least_tiled_words(const LoopNest& nest, double words) {
  const Tiling tiling{nest, words, {nest.m, nest.n, nest.k}};
  double least = kInfinity;
  for (int stays = 0; stays < kNestDims; ++stays) {
    const int first = (stays + 1) % kNestDims, second = (stays + 2) % kNestDims;
    std::array<std::int64_t, 3> tile = {1, 1, 1};
    for (std::int64_t a = tiling.sizes[at(first)]; a > 0;
         a = next_smaller_tile(tiling.sizes[at(first)], a)) {
      tile[at(first)] = a;
      tile[at(second)] = tile[at(stays)] = 1;
      std::int64_t b = largest_tile(tiling, tile, second);
      // Without windows, tiles of one element along the innermost dimension are as good as any.
      for (; b > 0; b = nest.window.used ? next_smaller_tile(tiling.sizes[at(second)], b) : 0) {
        tile[at(second)] = b;
        tile[at(stays)] = 1;
        tile[at(stays)] = largest_tile(tiling, tile, stays);
        least = std::min(least, tiled_words(tiling, tile, stays));
      }
    }
  }
  return static_cast<double>(nest.batch) * least;
}

double least_cycles(const LoopNest& nest, const SystolicMachine& machine) {
  const BufferLevels& buffers = machine.buffers;
  const auto cores = static_cast<double>(machine.cores);
  double array = kInfinity;
  for (int f = 0; f < kArrayFlows; ++f) {
    if ((machine.array.flows >> f & 1) == 0) continue;
    const FlowUnits flow = flow_units(nest, machine.array, static_cast<ArrayFlow>(f));
    // However the folds and the stream are cut and dealt out, all cores together pass this long.
    const double passes = static_cast<double>(nest.batch) *
                          static_cast<double>(flow.units[at(flow.rows)]) *
                          static_cast<double>(flow.units[at(flow.columns)]) *
                          streamed_cycles(flow.units[at(flow.streamed)], 1, machine.array.rows);
    array = std::min(array, passes / cores);
  }
  // A unit has its stationary words, as many of the next, a streamed one and a sum.
  const double held = static_cast<double>(machine.array.rows * machine.array.columns *
                                          (2 * machine.array.unit_words + 2));
  const double passed = nest.window.used ? 0 : reused_words(nest_macs(nest) / cores, held);
  const double l2 = buffers.l2_words * cores * (buffers.l2_per_operand ? kNestDims : 1);
  return std::max({array + fill_cycles(machine.array),
                   cycles_at(passed, machine.array.words_per_cycle),
                   cycles_at(least_words(nest, l2), buffers.global_words_per_cycle),
                   cycles_at(nest.on_chip == 0 ? least_words(nest, buffers.global_words)
                                               : compulsory_hbm_words(nest),
                             buffers.hbm_words_per_cycle)});
}

}  // namespace braid
