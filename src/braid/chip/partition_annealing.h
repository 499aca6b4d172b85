#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/partition_sums.h"

namespace braid {

struct AnnealingBudget {
  std::int64_t moves_per_kernel = 30'000;
  std::int64_t most_moves = 10'000'000;
};

/// An order of the kernels in which partitions that fit on chip and move few bytes of tensors stand
/// together, found by simulated annealing from the partitions of a topological order, those that
/// wait last. `ends`: one past the last kernel of each, none with kernels of both passes.
///
/// A move takes one kernel to another partition that is neither before its writers nor behind its
/// readers and has the SRAM for it; new partitions may come up between all others. Moves that save
/// bytes are made, others with a probability of exp(-bytes / temperature); the temperature falls
/// from twice the mean size of tensors to a tenth of it. What else bounds a mapping is left aside:
/// cut_order (linear_cuts.h) finds the mapping of the order. Deterministic.
std::vector<std::uint32_t> anneal_partitions(const MapperTables& tables,
                                             std::span<const std::uint32_t> order,
                                             std::span<const std::uint32_t> ends,
                                             const AnnealingBudget& budget = {});

}  // namespace braid
