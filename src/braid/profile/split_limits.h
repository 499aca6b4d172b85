#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/listed_executions.h"
#include "braid/profile/profile.h"

namespace braid {

/// Which degrees a model allows.
struct SplitLimits {
  std::int64_t heads =
      0;  ///< gcd of what tp must divide (heads, features, vocabulary is padded); 0: tp = 1 only.
  std::int64_t kv_heads = 0;  ///< Key/value heads; tp beyond it replicates them.
  std::int64_t experts = 0;   ///< ep must divide it; 0: dense model.
  std::int64_t seq_len = 0;   ///< sp: tp divides it; cp: 2·cp divides it; 0: neither.
  bool recurrent = false;     ///< A layer needs the whole sequence in order: cp = 1 only.
  /// Further degrees tp, ascending, that shardings allow that the graph does not say
  /// (auto_degrees); without sequence parallelism.
  std::vector<int> automatic;
  /// Where layers have a finite list of options: what it has, in place of the above, which then are
  /// multiples of its degrees. Not owned.
  const ListedExecutions* listed = nullptr;
};
/// As the graph says: none automatic.
SplitLimits split_limits(const Graph& graph);

/// Whether tp divides what the graph says that it does.
bool divides_manually(const SplitLimits& limits, int tp);

/// Empty when the graph can run as `how` says, else why not ("tp 3 does not divide 64 attention
/// heads"). Of a finite list only the degrees count, and sequence parallelism where `how` has it.
std::string refusal(const SplitLimits& limits, const Execution& how);

}  // namespace braid
