#pragma once

#include <span>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/measure/kernel_finding.h"
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

/// Makes the kernels in a child process, holds each one's answer against the reference kernels'
/// (kernel_problem.h), and measures those that are right, interleaved (measurement.h). Where the
/// child crashes or takes longer than `limit_s` for each of them, every kernel gets a child of its
/// own, so that one that breaks costs itself alone. In the order of `trials`.
std::vector<KernelFinding> measure_kernels(std::span<const KernelTrial> trials,
                                           const MeasureOptions& options, double limit_s);

}  // namespace braid
