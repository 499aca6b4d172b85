#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/chip/frontier_sets.h"
#include "braid/chip/partition_annealing.h"
#include "braid/chip/partition_sums.h"
#include "braid/chip/set_rounding.h"

namespace braid {

/// How much work goes into finding floors.
struct TrafficFloorBudget {
  std::size_t sets = 12'000'000;       ///< Connected sets of kernels to list, at most.
  std::int64_t work = 20'000'000'000;  ///< Numbers read or written by the linear program.
  std::size_t kernels = 1000;          ///< Larger graphs get no floors.
  RoundingBudget rounding = {};
  FrontierBudget frontier = {};                ///< Where there are more sets.
  AnnealingBudget annealing = {};              ///< Likewise, for a mapping to begin with.
  std::int64_t frontier_work = 3'000'000'000;  ///< Numbers read or written for it.
};

/// What the sets of kernels that fit on chip come to.
struct TrafficFloors {
  std::vector<double> bytes;         ///< Floors of the kernels; empty without any.
  std::vector<std::uint32_t> order;  ///< Of kernels, in which good partitions stand together, or
                                     ///< empty: not looked for.
};

/// Bytes for each kernel such that every partition that fits on chip moves at least its kernels'
/// sum of them in tensors that it reads or writes; their total is as large as can be found. The
/// kernels that are left behind a downset therefore move at least the sum of theirs, however they
/// are partitioned, and a bound of that is consistent: a partition lowers it by no more than it
/// moves itself.
///
/// Found by linear programming. Of all partitions into sets P that fit, the least Σ traffic(P) is
/// at least that of fractions of them that add up to 1 for every kernel, whose dual is the floors:
/// the most Σ f with f(P) ≤ traffic(P) for all P. Only connected P count: what a set of several
/// pieces moves is the sum of what they move, they fit if it does, and each is again between two
/// downsets (fitting_sets.h). They are the program's columns, and most are never in it: those that
/// exceed the present floors most, a few for each first kernel, are added and the program is solved
/// again by the simplex method. Floors lowered, at each first kernel, by the most that a set of it
/// exceeds them satisfy all; when the program gives hardly more than the best of these, they are
/// the result.
///
/// Where too many sets fit to list them, those that exceed the floors most are found by dynamic
/// programming over the frontier of an order of the kernels (frontier_sets.h), if it is narrow. The
/// bound stays below the program's value by up to 0.3 %, as each pass takes long, and by more when
/// the work is used up.
///
/// Good partitions come from the sets that exceed the floors most, or fall least short of them
/// (set_rounding.h), where sets are not listed together with those of an annealed mapping
/// (partition_annealing.h), which is kept if it is faster.
///
/// Empty when the graph is too large for that, or the frontier too wide and sets too many.
TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget = {});

}  // namespace braid
