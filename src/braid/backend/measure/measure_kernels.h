#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/measure/kernel_problem.h"
#include "braid/backend/measure/measurement.h"

namespace braid {

/// A kernel to be made, held against the reference and measured.
struct KernelTrial {
  const BackendPattern* pattern = nullptr;
  const KernelJob* job = nullptr;
  /// Of regions, what it is fed and held against; nullptr: random numbers and the reference
  /// kernels' answer.
  const KnownAnswer* known = nullptr;
};

/// What came of it. With neither a measurement nor a problem the library refuses the job.
struct KernelFinding {
  std::optional<Measurement> measured;
  std::string problem;  ///< It fails, crashes, hangs, or its answer is wrong.
};

/// Makes the kernels in a child process, holds each one's answer against the reference kernels'
/// (kernel_problem.h), and measures those that are right, interleaved (measurement.h). Where the
/// child crashes or takes longer than `limit_s` for each of them, every kernel gets a child of its
/// own, so that one that breaks costs itself alone. In the order of `trials`.
std::vector<KernelFinding> measure_kernels(std::span<const KernelTrial> trials,
                                           const MeasureOptions& options, double limit_s);

}  // namespace braid
