#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/chip/cores/core_kind.h"

namespace braid {

//   CoreProblem problem{.operators = {{CoreKind::tensor, 4e-6, 1e-6}, {CoreKind::vector, 2e-6,
//   1e-6}},
//                       .edges = {{0, 1}}, .cores = {.tensor = 4, .vector = 4}};
//   schedule_cores(problem).schedule.makespan_s;  // 2e-6: both on all cores

struct CoreOperator {
  CoreKind kind = CoreKind::none;
  double one_core_s = 0;   ///< On one core, or one pair.
  double all_cores_s = 0;  ///< Spread over all cores of its kind, or of both.
  friend bool operator==(const CoreOperator&, const CoreOperator&) = default;
};

/// Cores of a chip. Tensor core i and vector core i are a pair, as far as there are both.
struct CoreCounts {
  std::int64_t tensor = 1;
  std::int64_t vector = 1;
  std::int64_t pairs() const { return std::min(tensor, vector); }
  friend bool operator==(const CoreCounts&, const CoreCounts&) = default;
};

/// What else may run while an operator is spread over all cores.
enum class AllCoresRule : std::uint8_t {
  alone,     ///< Nothing: it takes the whole bandwidth of the buffer that feeds all cores (Phaze).
  own_kind,  ///< What needs no core of its kind: a tensor operator leaves the vector cores alone.
};

/// Operators and who must have ended before whom: pairs (earlier, later) without a cycle.
struct CoreProblem {
  std::vector<CoreOperator> operators;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  CoreCounts cores;
  AllCoresRule rule = AllCoresRule::alone;
};

/// Whether there are cores of each kind that an operator needs, every time is finite and not
/// negative, what takes time has a kind, and edges lead between operators without a cycle.
bool is_valid(const CoreProblem& problem);

}  // namespace braid
