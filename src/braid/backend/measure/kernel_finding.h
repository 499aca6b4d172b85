#pragma once

#include <optional>
#include <string>

#include "braid/backend/measure/measurement.h"

namespace braid {

/// What came of a kernel that was to be made, held against the reference and measured. With neither
/// a measurement nor a problem the library refuses the job.
struct KernelFinding {
  std::optional<Measurement> measured;
  std::string problem;  ///< It fails, crashes, hangs, or its answer is wrong.
  bool broke = false;   ///< It crashed or hung, which may be otherwise another time.
};

}  // namespace braid
