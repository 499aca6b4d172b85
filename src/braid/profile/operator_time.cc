#include "braid/profile/operator_time.h"

#include <algorithm>
#include <cmath>

#include "braid/base/infinity.h"

namespace braid {
namespace {

double ceil_div(double value, double step) { return std::ceil(value / step - 1e-9); }

}  // namespace

double matmul_compute_s(const MatMulShape& shape, double peak, const Chip& chip) {
  const Efficiency& efficiency = chip.efficiency;
  const double units = chip.compute_units;
  const double unit_rate = peak * efficiency.matmul_peak_fraction / units;
  double best_s = kInfinity;
  // A smaller tile reuses its operands less: each halving costs a tenth of the rate.
  double tile_rate = 1;
  double tile_m = efficiency.tile_m;
  double tile_n = efficiency.tile_n;
  for (int halving = 0; halving < 4; ++halving) {
    const double tiles = shape.batch * ceil_div(shape.m, tile_m) * ceil_div(shape.n, tile_n);
    const double depth = std::max(1.0, ceil_div(shape.k, efficiency.tile_k)) * efficiency.tile_k;
    for (int split = 1; split <= 16; split *= 2) {
      if (split > 1 && (tiles * split > 2 * units || depth / split < 4 * efficiency.tile_k)) break;
      const double waves = ceil_div(tiles * split, units);
      const double part_s = 2 * tile_m * tile_n * (depth / split) / (unit_rate * tile_rate);
      best_s = std::min(best_s, waves * part_s);
    }
    if (tile_m >= tile_n) {
      tile_m /= 2;
    } else {
      tile_n /= 2;
    }
    tile_rate *= 0.9;
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
