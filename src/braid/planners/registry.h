#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/planners/graphpipe/graphpipe_planner.h"
#include "braid/planners/job/job.h"
#include "braid/planners/phaze/phaze_planner.h"
#include "braid/planners/piper/piper_planner.h"

namespace braid {

//   Job job; job.graph = &graph; job.global_batch = 128;
//   const Outcome outcome = find_planner("braid").plan(job, system, SpaceOptions{}, Budget{}, {});
//   if (!outcome.candidates.empty()) outcome.candidates.front().plan;

/// What any planner may be told: the space, and what is for one of them alone.
struct PlannerOptions : SpaceOptions {
  PlannerOptions() = default;
  PlannerOptions(SpaceOptions space) : SpaceOptions(std::move(space)) {}  // NOLINT: a space is one

  GraphPipeOptions graphpipe;
  PhazeObjective phaze_objective = PhazeObjective::flush;
  PiperNetwork piper_network = PiperNetwork::flat;
};

struct PlannerEntry {
  std::string_view name;
  std::string_view description;
  Outcome (*plan)(const Job&, const System&, const PlannerOptions&, const Budget&, const Progress&);
  bool heterogeneous_stages = false;  ///< Its stages have parallel forms of their own.
  bool compared = true;               ///< Compared with others where none are named.
};
/// All planners, in the order in which they are listed to users.
const std::vector<PlannerEntry>& planners();
/// Throws Error, which names the option, with the known names.
const PlannerEntry& find_planner(const std::string& name, const char* option = "--planner");

/// The planner `braid` on any system: plan_uniform (uniform/uniform_planner.h) on homogeneous ones;
/// mixed clusters and bandwidth matrices have one of their own (mixed/mixed_planner.h).
Outcome plan_braid(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress = {});

}  // namespace braid
