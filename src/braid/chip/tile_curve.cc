#include "braid/chip/tile_curve.h"

#include <algorithm>
#include <iterator>

#include "braid/base/infinity.h"
#include "braid/chip/kernel_graph.h"

namespace braid {
namespace {

/// The smallest p above `p` for which ceil(groups / p) is less; `none` when it is 1 already.
std::int64_t next_divisor(std::int64_t groups, std::int64_t p, std::int64_t none) {
  const std::int64_t rounds = ceil_div(groups, p);
  return rounds == 1 ? none : ceil_div(groups, rounds - 1);
}

// Total tiles that the kernels need to take at most `cycles`, or one more than `tiles`.
std::int64_t tiles_needed(std::span<const TileCurve* const> curves, double cycles,
                          std::int64_t tiles) {
  std::int64_t total = 0;
  for (const TileCurve* curve : curves) {
    const std::optional<std::int64_t> own = tiles_for(*curve, cycles);
    if (!own || *own > tiles - total) return tiles + 1;
    total += *own;
  }
  return total;
}

}  // namespace

TileCurve tile_curve(const ChipKernel& kernel, const DataflowChip& chip) {
  const std::int64_t row_groups = ceil_div(kernel.rows, chip.lanes);
  const std::int64_t column_groups =
      kernel.matrix ? ceil_div(kernel.columns, chip.stages) : kernel.columns;
  const double depth = kernel.matrix ? static_cast<double>(kernel.depth) : 1;
  std::vector<double> best(static_cast<std::size_t>(chip.tiles) + 1, kInfinity);
  const std::int64_t none = chip.tiles + 1;
  for (std::int64_t rows = 1; rows <= chip.tiles; rows = next_divisor(row_groups, rows, none)) {
    const auto row_rounds = static_cast<double>(ceil_div(row_groups, rows));
    const std::int64_t most = kernel.matrix ? chip.tiles / rows : 1;
    for (std::int64_t columns = 1; columns <= most;
         columns = next_divisor(column_groups, columns, none)) {
      const auto column_rounds = static_cast<double>(ceil_div(column_groups, columns));
      double& entry = best[static_cast<std::size_t>(rows * columns)];
      entry = std::min(entry, row_rounds * column_rounds * depth);
    }
  }
  TileCurve curve;
  for (std::size_t tiles = 1; tiles < best.size(); ++tiles) {
    if (curve.empty() || best[tiles] < curve.back().cycles) {
      curve.push_back({static_cast<std::int64_t>(tiles), best[tiles]});
    }
  }
  return curve;
}

std::optional<std::int64_t> tiles_for(const TileCurve& curve, double cycles) {
  const auto step =
      std::lower_bound(curve.begin(), curve.end(), cycles,
                       [](const TileStep& entry, double most) { return entry.cycles > most; });
  if (step == curve.end()) return std::nullopt;
  return step->tiles;
}

std::optional<TileAllocation> allocate_tiles(std::span<const TileCurve* const> curves,
                                             std::int64_t tiles) {
  if (curves.empty()) return TileAllocation{};
  if (static_cast<std::int64_t>(curves.size()) > tiles) return std::nullopt;
  // Of each curve the steps that are faster than the best so far, and of these those that fit.
  double least = kInfinity;
  const auto fits = [&](const TileStep& step) {
    return tiles_needed(curves, step.cycles, tiles) <= tiles;
  };
  for (const TileCurve* curve : curves) {
    const auto faster = std::partition_point(
        curve->begin(), curve->end(), [&](const TileStep& step) { return step.cycles >= least; });
    if (faster == curve->end() || !fits(*faster)) continue;
    least = std::prev(std::partition_point(faster, curve->end(), fits))->cycles;
  }
  if (least == kInfinity) return std::nullopt;
  TileAllocation allocation{least, {}};
  allocation.tiles.reserve(curves.size());
  for (const TileCurve* curve : curves) allocation.tiles.push_back(*tiles_for(*curve, least));
  return allocation;
}

}  // namespace braid
