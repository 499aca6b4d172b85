#pragma once

#include <cstdint>
#include <span>

#include "braid/plan/ease.h"
#include "braid/planners/job/mixed_job.h"

namespace braid {

/// The ease of a pipeline whose stages have configs of their own: a dimension counts where any
/// stage has it, and a layout is its own where stages differ in config, or in layers otherwise than
/// trainers deal these out.
Ease ease_of(std::span<const PlacedStage> stages, std::int64_t seq_len);

}  // namespace braid
