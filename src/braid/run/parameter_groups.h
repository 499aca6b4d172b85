#pragma once

#include <cstdint>
#include <vector>

#include "braid/run/staged_model.h"

namespace braid {

/// Parameters that the same ranks hold. Once an iteration these sum their gradients, whether they
/// are replicas of a stage or stages that share a parameter.
struct ParameterGroup {
  std::vector<std::int32_t> ranks;  ///< Ascending.
  std::vector<ValueId> parameters;  ///< Ascending.
  Zero zero = Zero::none;           ///< The least of its stages'.
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// Whether its ranks keep but their parts of the parameters, and gather them for each pass.
inline bool is_gathered(const ParameterGroup& group) {
  return group.zero == Zero::parameters && group.ranks.size() > 1;
}

/// All groups, in the order in which every rank reduces those that it is in. Throws Error, naming
/// the stage, where ZeRO-3 shards a parameter that another stage holds too: their passes are not at
/// the same time.
std::vector<ParameterGroup> parameter_groups(const StagedModel& staged, const Plan& plan);

}  // namespace braid
