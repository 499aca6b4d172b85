#pragma once

#include <optional>

#include "braid/plan/outcome.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/configuration.h"

namespace braid {

/// Keeps what came nearest to fitting: the least missing_bytes(), of a configuration that does not
/// fit by the assignment of those tried that needs least of the device. `device_bytes`: what it
/// needs of the device at least, which may be enough to leave it out. The `reason` stays empty.
void keep_nearest(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double device_bytes, AssessmentScratch& scratch,
                  std::optional<Infeasibility>& nearest);

}  // namespace braid
