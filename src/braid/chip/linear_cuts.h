#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "braid/chip/partition_sums.h"

namespace braid {

/// Partitions as runs of an order of the kernels.
struct LinearCuts {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> ends;  ///< One past the last kernel of each partition.
  double time_s = PartitionSums::kImpossible;
};

/// The fastest cuts of a topological order, exactly, by dynamic programming over its prefixes; runs
/// longer than some thousands of kernels are left out in graphs of more. Adds the runs that it
/// looks at to `looked_at`.
LinearCuts cut_order(const MapperTables& tables, std::span<const std::uint32_t> order,
                     std::int64_t& looked_at);

/// Good cuts: of the order by levels, of one that follows each chain to its end, of one that keeps
/// what crosses small, of the kernels' numbers, and then of orders that differ from the best so far
/// in the place of one kernel, until `most_runs` have been looked at or `enough_s` is reached.
/// `first` is one more order to begin with, unless empty. Deterministic.
LinearCuts find_cuts(const MapperTables& tables, std::int64_t most_runs, double enough_s,
                     std::int64_t& looked_at, std::span<const std::uint32_t> first = {});

}  // namespace braid
