#pragma once

#include <cstdint>
#include <vector>

#include "braid/chip/partition_sums.h"

namespace braid {

/// How much work goes into finding floors.
struct TrafficFloorBudget {
  std::int64_t sets = 3'000'000;      ///< Connected sets of kernels looked at; past it no floors.
  std::int64_t columns = 400'000;     ///< That fit on chip and can be partitions; likewise.
  std::int64_t work = 6'000'000'000;  ///< Numbers read or written by the linear program.
  std::size_t kernels = 1000;         ///< Larger graphs get no floors.
};

/// What listing the sets of kernels that fit on chip comes to.
struct TrafficFloors {
  std::vector<double> bytes;         ///< Floors of the kernels; empty without any.
  std::vector<std::uint32_t> order;  ///< Of kernels, in which good partitions stand together.
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
/// downsets. (Kernels are neighbours when one reads the other's output or, where readers share it,
/// both read a third one's.) So all connected P are listed, the program is solved by the simplex
/// method, and floors are lowered where rounding or an early stop left some f(P) above traffic(P).
///
/// Good partitions come from the fractions: sets whose fraction is all but 1, or else the largest,
/// are taken if they can run one after the other, and the program is solved again for the rest.
///
/// Empty when the graph or the chip's SRAM is too large for that.
TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget = {});

}  // namespace braid
