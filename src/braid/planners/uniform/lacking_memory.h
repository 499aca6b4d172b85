#pragma once

#include <optional>

#include "braid/plan/outcome.h"
#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/uniform/assess.h"

namespace braid {

/// What a configuration that does not fit lacks of the device's memory and of the host's, with the
/// assignment of those tried that needs least of the device. Its `reason` is empty.
Infeasibility lacking_memory(const ChainJob& chain, LayerTables& tables,
                             const Configuration& configuration, AssessmentScratch& scratch);

/// Keeps what came nearest to fitting: the least missing_bytes(). `device_bytes`: what the
/// configuration needs of the device at least, which may be enough to leave it out.
void keep_nearest(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double device_bytes, AssessmentScratch& scratch,
                  std::optional<Infeasibility>& nearest);

}  // namespace braid
