#pragma once

#include <string>
#include <vector>

#include "braid/evaluate/stated_plan.h"

namespace braid {

/// A step from one configuration to another.
struct ConfigurationChange {
  std::string what;           ///< "tp 8 -> 2, dp 2 -> 8"
  StatedConfiguration after;  ///< The whole configuration behind it.
  double time_s = 0;          ///< Of an iteration behind it.
  double peak_memory_bytes = 0;
  bool fits = true;
};

/// What a chain of changes is made within.
struct ChangeRules {
  const Job& job;
  const System& system;
  const TrainerLimits& can;
};

/// Leads from one configuration of a job to another by single changes, each of a degree (data
/// parallel ranks take what the others leave of the devices), recomputation, the ZeRO stage, an
/// offload, the micro-batch, the schedule, the order of axes, the number of devices or the layout.
/// Stated layers are given up for those that the trainer deals before the number of chunks changes,
/// so that no other change's figures have a layout's in them.
///
/// Steepest descent: of the changes that are left, the one comes next behind which the job fits and
/// is fastest; where none fits, the one behind which least memory is needed. What only works
/// together, such as a degree that frees the devices of another, comes as the first pair that
/// works, or else as all that is left in one step. The last step's figures are those of `to`.
///
/// A change that helps only beside another one makes this chain rise before it falls. Where another
/// order of few changes rises less, by a hundredth of the first time and more, the one that rises
/// least is taken; of such orders one with fewest configurations that do not fit. Cost: at most
/// quadratic in the differences, or 256 where there are up to eight, a stated_plan() each.
std::vector<ConfigurationChange> change_chain(const StatedConfiguration& from,
                                              const StatedConfiguration& to,
                                              const ChangeRules& rules);

}  // namespace braid
