#pragma once

#include <cstdint>
#include <span>

#include "braid/base/infinity.h"
#include "braid/chip/chip_work.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/dataflow/dataflow_setup.h"
#include "braid/dataflow/plan_rules.h"
#include "braid/dataflow/sharding.h"

namespace braid {

/// A sharding of a layer's kernels among chips, and its mapping onto each.
struct ShardedMapping {
  Sharding dims;
  ChipWork work;
  /// Without a search for shardings it is that of the mapping; else `optimal` and `lower_bound_s`
  /// are over all shardings and all mappings of each, and work counts all of them.
  MappingOutcome outcome;
  std::int64_t boxes = 0;  ///< Sets of shardings that were bounded; 0: shardings are not searched.
};

/// The least time of a micro-batch through a layer over `first`'s shardings, of which there is at
/// least one, with the best mapping of each; where rules.job.joint_sharding says so, over all
/// shardings (option_dims()). Never more than any of `first`. Shardings and mappings that take
/// `target_s` or more are not looked for.
///
/// A branch and bound over sets of shardings (boxes) that leave each kernel some of its options.
/// No sharding of a box is faster than the best mapping of work that has the least of each kernel,
/// tensor and message in it (box_work()), as time only grows with these. Unless messages hide
/// behind compute and memory, they add up: then the bound is the best mapping without them plus
/// their least sum, exactly by elimination, with what else a kernel's option adds for certain. The
/// box of least bound is halved where a sharding that suits its mapping misses the bound most. A
/// part for which the mapping found before takes no longer than before needs no new one. At the
/// end nothing faster is left out, or the budget is used up (a quarter of rules.budget.partitions
/// in sets of kernels, a box counting as kernels^3 / 64 of them) and the least bound is the answer.
ShardedMapping divide_and_map(const DataflowSetup& setup, const DataflowPlanRules& rules,
                              std::span<const Sharding> first, double target_s = kInfinity);

/// The best mapping of work, or the one kernel by kernel where rules say so.
MappingOutcome map_work(const ChipWork& work, const DataflowChip& chip,
                        const DataflowPlanRules& rules, const MapperBudget& budget,
                        std::span<const TileCurve> curves);

/// A time that no sharding and mapping of a layer takes less than: the least operations, traffic
/// and own messages of each kernel, and `messages_s` for all others, that is partial sums and
/// changes of layout. Linear.
double sharding_bound_s(const DataflowSetup& setup, const DataflowPlanRules& rules,
                        double messages_s);

/// The least time of partial sums and changes of layout over all shardings, 0 if that is not known.
double least_messages_s(const DataflowSetup& setup, const JobRules& rules);

}  // namespace braid
