#pragma once

#include <cstdint>

namespace braid {

/// How many samples a stage of a graph pipeline has in flight.
enum class InFlight : std::uint8_t {
  least,  ///< The fewest that lose no time at the plan's rate, from its times (GraphPipeProblem).
  table   ///< Jeon 2024, Table 3.2: right for equal forward and backward passes.
};

}  // namespace braid
