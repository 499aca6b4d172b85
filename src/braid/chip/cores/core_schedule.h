#pragma once

#include <cstdint>
#include <vector>

namespace braid {

/// When and where an operator runs.
struct PlacedOperator {
  double start_s = 0;
  double end_s = 0;
  bool all_cores = false;  ///< On all cores of its kind; else on those below.
  std::int32_t tensor_core = -1;
  std::int32_t vector_core = -1;
  friend bool operator==(const PlacedOperator&, const PlacedOperator&) = default;
};

struct CoreSchedule {
  std::vector<PlacedOperator> operators;  ///< In the problem's order.
  double makespan_s = 0;                  ///< When the last one ends; the first starts at 0.
};

}  // namespace braid
