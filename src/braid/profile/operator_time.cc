#include "braid/profile/operator_time.h"

#include <algorithm>
#include <cmath>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Of its rate, by each halving of a tile: a smaller one reuses its operands less.
constexpr double kHalvedTileRate = 0.9;
constexpr int kTiles = 4;                ///< The chip's and three halvings of it.
constexpr int kMostDepthSplits = 16;     ///< Parts that the inner dimension is cut into.
constexpr double kLeastStepsOfPart = 4;  ///< Steps of tile_k in a part, at least.
constexpr double kMostWavesOfParts = 2;  ///< Splitting is for units that would be idle.

/// Steps that a value takes; one that only rounding lifts above a whole number is none more.
double ceil_div(double value, double step) { return std::ceil(value / step - kToleranceShare); }

}  // namespace

double matmul_compute_s(const MatMulShape& shape, double peak, const Chip& chip) {
  const Efficiency& efficiency = chip.efficiency;
  const double units = chip.compute_units;
  const double unit_rate = peak * efficiency.matmul_peak_fraction / units;
  double best_s = kInfinity;
  double tile_rate = 1;
  double tile_m = efficiency.tile_m;
  double tile_n = efficiency.tile_n;
  for (int halving = 0; halving < kTiles; ++halving) {
    const double tiles = shape.batch * ceil_div(shape.m, tile_m) * ceil_div(shape.n, tile_n);
    const double depth = std::max(1.0, ceil_div(shape.k, efficiency.tile_k)) * efficiency.tile_k;
    for (int split = 1; split <= kMostDepthSplits; split *= 2) {
      if (split > 1 && (tiles * split > kMostWavesOfParts * units ||
                        depth / split < kLeastStepsOfPart * efficiency.tile_k)) {
        break;
      }
      const double waves = ceil_div(tiles * split, units);
      const double part_s = 2 * tile_m * tile_n * (depth / split) / (unit_rate * tile_rate);
      best_s = std::min(best_s, waves * part_s);
    }
    if (tile_m >= tile_n) {
      tile_m /= 2;
    } else {
      tile_n /= 2;
    }
    tile_rate *= kHalvedTileRate;
  }
  return best_s;
}

double memory_s(double bytes, const Chip& chip) {
  if (bytes <= 0) return 0;
  return (bytes + chip.efficiency.memory_half_bytes) /
         (chip.memory.bytes_per_s * chip.efficiency.memory_peak_fraction);
}

double vector_s(double flops, const Chip& chip) {
  return flops / (chip.vector_flops_per_s * chip.efficiency.vector_peak_fraction);
}

}  // namespace braid
