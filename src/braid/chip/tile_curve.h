#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"

namespace braid {

/// With `tiles` compute tiles a kernel takes `cycles`; the next step up needs more tiles.
struct TileStep {
  std::int64_t tiles = 0;
  double cycles = 0;
  friend bool operator==(const TileStep&, const TileStep&) = default;
};

/// Steps of a kernel, tiles ascending and cycles descending: the fewest tiles for each reachable
/// time. Tiles form a grid of P_l x P_s that divides the rows (in groups of `lanes`) and the
/// columns (in groups of `stages`): ceil(M/(P_l W)) ceil(N/(P_s H)) K cycles; elementwise kernels
/// use the lanes alone: ceil(M/(P_l W)) N (DFModel, section V-B1, as its program has it).
/// O(tiles log tiles) time and O(tiles) space at most.
using TileCurve = std::vector<TileStep>;
TileCurve tile_curve(const ChipKernel& kernel, const DataflowChip& chip);

/// Fewest tiles with which the kernel takes at most `cycles`; nullopt when the chip has too few.
std::optional<std::int64_t> tiles_for(const TileCurve& curve, double cycles);

struct TileAllocation {
  double cycles = 0;                ///< Of the slowest kernel.
  std::vector<std::int64_t> tiles;  ///< For each kernel.
};

/// Divides `tiles` among kernels that run side by side so that the slowest is as fast as can be,
/// each getting the fewest tiles for that time. Exact: the least time is a step of some curve, and
/// fewer tiles are needed for more time. nullopt when there are more kernels than tiles.
std::optional<TileAllocation> allocate_tiles(std::span<const TileCurve* const> curves,
                                             std::int64_t tiles);

}  // namespace braid
