#pragma once

#include <cstdint>
#include <optional>

#include "braid/planners/mixed/problem.h"

namespace braid {

/// The pipeline of a problem that comes nearest to fitting, and its stage that lacks most.
struct MixedShortage {
  MixedPipeline pipeline;  ///< Stages alone; no times.
  std::size_t stage = 0;
  double needed_bytes = 0, available_bytes = 0;  ///< Of a device of that stage.
  double missing_bytes() const { return needed_bytes - available_bytes; }
};

/// The pipeline whose stages all fit when every device gets as few bytes more as possible, to a
/// thousandth of these; host memory stays as it is. For each number of bytes a search over (stages,
/// devices used) of the layers that may be left in front. Nullopt when no number of bytes below
/// `below_bytes` is enough. Takes what it tries from `steps_left`, stages and layers of stages;
/// where that runs out, it may not be the nearest.
std::optional<MixedShortage> least_shortage(const MixedProblem& problem, double below_bytes,
                                            std::int64_t& steps_left);

}  // namespace braid
