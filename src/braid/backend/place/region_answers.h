#pragma once

#include <map>
#include <vector>

#include "braid/backend/measure/measure_kernels.h"
#include "braid/backend/place/candidates.h"

namespace braid {

/// What regions of a program read and give in the run that it is fixed for: what their kernels are
/// fed and held against, since running every region by the reference kernels would take as long as
/// all of them together.
class RegionAnswers {
 public:
  /// Costs a run with the reference kernels where regions have borders inside the program.
  RegionAnswers(const FixedProgram& fixed, const std::vector<KernelCandidate>& regions);

  KnownAnswer of(const KernelCandidate& region) const;

 private:
  const FixedProgram& fixed_;
  std::map<ValueId, DenseTensor> tensors_;
};

}  // namespace braid
