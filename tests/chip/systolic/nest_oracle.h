#pragma once

#include <array>
#include <cstdint>

#include "braid/chip/systolic/nest_mapping.h"

namespace braid {

/// Loops from the outermost to the innermost: dimensions 0 to 2, and 3 for the batch.
struct LoopOrders {
  std::array<int, 4> steps = {3, 0, 1, 2};
  std::array<int, 3> rounds = {0, 1, 2};
};

/// A mapping's cost by walking through its loops, tile by tile and pass by pass, and counting what
/// is loaded and stored when a tile is not the one that is there. Shares nothing with nest_cost()
/// but the types; `mapping`'s stays are not looked at, the orders are. nullopt where tiles do not
/// fit.
std::optional<NestCost> walked_cost(const LoopNest& nest, const SystolicMachine& machine,
                                    const NestMapping& mapping, const LoopOrders& orders);

/// Fewest cycles of all mappings in all orders of loops, walked one by one; infinite for none.
double fewest_cycles(const LoopNest& nest, const SystolicMachine& machine);

}  // namespace braid
