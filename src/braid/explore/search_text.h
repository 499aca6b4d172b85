#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/explore/findings_table.h"
#include "braid/explore/hysteresis.h"
#include "braid/explore/one_after_other.h"
#include "braid/explore/system_search.h"

namespace braid {

/// What a search did and proved, in a sentence or two: "The 10 of 29,360 systems that have most
/// throughput, proven: …".
std::string search_text(const Space& space, const PlannerSearch& search);

/// Assumptions of the best system of each planner. Those of others differ in the names of chips
/// alone.
std::vector<std::string> best_assumptions(const Space& space, const SystemSearchResult& found);

/// The names of a system's values on axes that have several.
std::string system_name(const Space& space, const FoundSystem& system);

/// The best system against one that was chosen before its plan.
std::string joint_text(const Space& space, const PlannerSearch& search, const OneAfterOther& other);

/// What Phaze's rule looks at and finds, against the best system.
std::string hysteresis_text(const Space& space, const PlannerSearch& search,
                            const HysteresisRule& rule, const HysteresisFinding& finding);

/// Numbers of the points of the systems that are listed, system by system.
std::vector<std::size_t> best_points(const Space& space, const PlannerSearch& search);

/// The systems that a search over several workloads lists, with the figure that was searched for
/// and the throughput of each workload.
TextRows systems_table(const Space& space, const PlannerSearch& search);

}  // namespace braid
