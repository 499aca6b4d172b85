#pragma once

#include "braid/profile/estimator.h"
#include "braid/system/system.h"

namespace braid::test {

/// The groups of the first device.
inline LayerGroups groups_of(const System& system, const Execution& how) {
  return {span_of(system, 1, how.tp), span_of(system, how.tp, how.cp),
          span_of(system, how.tp, how.ep)};
}

}  // namespace braid::test
