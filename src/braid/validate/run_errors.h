#pragma once

#include <vector>

#include "braid/trust/evidence.h"
#include "braid/validate/cross_validate.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// How far off each run that can be predicted is, with the catalogue's figures and, from
/// cross_validate() over the same runs, with figures that have not seen its dataset (on mixed
/// clusters, to which nothing is fitted, with the catalogue's as well). In the runs' order.
Evidence evidence_of(const std::vector<MeasuredRun>& runs, const std::vector<LeftOut>& left_out);

}  // namespace braid
