#pragma once

#include <vector>

#include "braid/kernels/kernel_group.h"

namespace braid {

/// What was fitted to one group.
struct FittedKernel {
  std::vector<double> figures;  ///< In the order of the form's fields, to four digits.
  int choice = 0;
};

/// Fits the groups of one operation on one chip to their rows that are not held out: each by
/// itself, options changed one after the other while that helps, then all together with one figure
/// for the chip where the form says so. Residuals are logarithms of predicted / measured, large
/// ones counted by their size alone; a weak pull to the starts keeps figures in place that rows say
/// nothing of. Deterministic. Cost: some thousand times of every row.
std::vector<FittedKernel> fit_kernels(const std::vector<const KernelGroup*>& groups);

}  // namespace braid
