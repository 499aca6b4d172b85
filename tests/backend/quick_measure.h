#pragma once

#include "braid/backend/measure/measurement.h"

namespace braid {

/// As short as a measurement can be, where times do not matter.
inline constexpr MeasureOptions quick{.warm_up_runs = 1, .samples = 3, .sample_s = 0};

}  // namespace braid
