#pragma once

#include <string>

#include "braid/explore/system_search.h"

namespace braid {

/// What comes of choosing the system first and the plan afterwards, to hold against a search for
/// both together.
struct OneAfterOther {
  std::string form;        ///< The parallel form of the reference plan; empty: there is none.
  FoundSystem system;      ///< The best for that form.
  double fixed_value = 0;  ///< What it reaches so split, by the figure searched for.
  double value = 0;        ///< What its best plan reaches; 0: no system was found.
};

/// The best plan on the reference, the chip that architectures are `of` or else the first chip or
/// cluster of the space, with the first values of all other axes; the system that is best when the
/// work is split as in that plan (degrees, micro-batch, recomputation, ZeRO and schedule fixed);
/// then the best plan on that system. Never better than the best system of search_systems(). Of a
/// space with one workload. Cost: another search.
OneAfterOther choose_one_after_other(const Space& space, std::size_t planner);

}  // namespace braid
