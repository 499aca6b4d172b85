#pragma once

#include <string>

#include "braid/system/system.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A cluster, or why there is none.
struct RunSystem {
  System system;
  std::string reason;  ///< Empty when there is one.
};

/// The cluster that a run was measured on: `hardware` names a cluster of the catalogue or holds the
/// name of a chip that one is made of ("A100-SXM4-80GB (Selene)"), with as many devices as the run
/// used. Several types ("12x V100 + 4x T4") make a mixed cluster, in their order; how many there
/// are of each must be said. Smaller nodes and network bandwidths that the row states ("4x100Gb
/// RoCE per node", "400Gbps/node", "400Gb/s per GPU") replace the catalogue's, on clusters of one
/// type; cards that are held below their usual power ("H100 (500 W)") reach less of their peak; a
/// multiple of 64 devices on racks of 72 takes 64 of each. Deterministic; loads a file a
/// type.
RunSystem system_of(const MeasuredRun& run);

}  // namespace braid
