#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "braid/base/infinity.h"
#include "braid/chip/chip_work.h"
#include "braid/chip/dataflow_chip.h"
#include "braid/chip/mapping.h"

namespace braid {

enum class MappingStatus : std::uint8_t {
  optimal,     ///< No mapping is faster by more than a part in 1e9.
  feasible,    ///< A mapping, and a bound on how much faster another could be.
  infeasible,  ///< DRAM is too small for every mapping.
  exhausted    ///< Budget used up with none found.
};

struct MapperBudget {
  std::int64_t partitions = 20'000'000;  ///< Sets of kernels that the search may look at.
  std::int64_t downsets = 500'000;       ///< That it may keep.
  /// Mappings that take this long are not looked for; with no faster one the outcome is
  /// `exhausted`, and a lower bound of this (less a part in 1e9) says that none is.
  double target_s = kInfinity;
  /// Further orders of the kernels that are cut before the search begins, as many as look at this
  /// many times the kernels' square.
  std::int64_t first_orders = 8;
  /// As `partitions`, where no linear order that was cut fits DRAM: the search seldom finds what
  /// does.
  std::int64_t unfit_partitions = std::numeric_limits<std::int64_t>::max();
};

struct MappingOutcome {
  MappingStatus status = MappingStatus::infeasible;
  Mapping mapping;
  MappingCost cost;
  double lower_bound_s = 0;     ///< No mapping takes less.
  std::int64_t partitions = 0;  ///< Sets of kernels looked at.
  std::int64_t downsets = 0;    ///< Kept, in all searches.
};

/// A time that no mapping takes less than: all operations at the chip's rate, its kernels' own
/// traffic, and all messages. Linear; looser than the bound that map_kernels begins with.
double work_bound_s(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules);

/// The fastest mapping of a chip's kernels onto it, any number of partitions.
///
/// A mapping is a path over downsets of the kernel graph: each partition is the difference of two.
/// The search takes the downset of least time so far plus bound first (A*; the bound is what the
/// remaining kernels compute, move and send at least, and is consistent, so each downset is left
/// once), walks all larger downsets whose difference's parameters fit on chip, with its times, SRAM
/// and DRAM use kept up to date kernel by kernel, and drops what cannot beat the best mapping
/// known. That one comes from exact cuts of several linear orders and moves of single kernels.
/// Where a twentieth of the budget does not do, and that is not small, the bound learns what SRAM
/// forces through DRAM (traffic_floor.h), and the partitions that this depends on give one more
/// order. When the budget is used up, the best mapping and the least bound of what is left are the
/// answer.
///
/// The program published with DFModel solves the same problem as a mixed-integer program (section
/// V-B). Deterministic; one thread. `curves`: tile curves of all kernels, where they are known.
MappingOutcome map_kernels(const ChipWork& work, const DataflowChip& chip,
                           const MappingRules& rules, const MapperBudget& budget = {},
                           std::span<const TileCurve> curves = {});

}  // namespace braid
