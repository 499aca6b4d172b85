#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/planners/registry.h"

namespace braid {

/// Of a job that has no plan for want of memory: a least set of its restrictions, as the user gives
/// them ("--recompute none"), without any one of which the planner finds a plan; empty where it
/// finds none without all of them. A deletion filter: each restriction is taken back in turn and
/// stays back while there is still no plan. nullopt where no restriction is given. Cost: a search
/// for each, of at most `most_work` configurations; one that ends at that counts as one that finds
/// a plan, so that more may be named than need be.
std::optional<std::vector<std::string>> restrictions_to_blame(const Job& job, const System& system,
                                                              const PlannerOptions& options,
                                                              const PlannerEntry& planner,
                                                              std::int64_t most_work = 20'000);

}  // namespace braid
