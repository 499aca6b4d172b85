#include "chip/systolic/tiled_words.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/chip/systolic/nest_mapping.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid::test {
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

}  // namespace

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

}  // namespace braid::test
