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

/// All groups, in the order in which every rank reduces those that it is in.
std::vector<ParameterGroup> parameter_groups(const StagedModel& staged, const Plan& plan);

}  // namespace braid
