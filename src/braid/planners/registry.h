#pragma once

#include <functional>
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
//   const PlannerEntry& planner = find_planner(kDefaultPlanner);
//   const Outcome outcome = planner.plan(job, system, SpaceOptions{}, Budget{}, {});
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
  /// Heading of the options that it and few others are told, such as kPhazeOptions; empty: none.
  std::string_view own_options = "";
  bool recommends = false;      ///< May propose a plan that is easier to run than the fastest.
  bool bounds_systems = false;  ///< A search over systems (explore) has bounds for its plans.
  bool recomputes_all = false;  ///< Its plans recompute all layers alike.
  /// The time that it makes least, where that is not the simulated one: "Phaze's time of a batch".
  std::string_view own_time = "";
};

inline constexpr const char* kPhazeOptions = "Planner phaze";
inline constexpr const char* kPiperOptions = "Planner piper and its variants";
inline constexpr const char* kGraphPipeOptions = "Planner graphpipe";

/// The planner where none is named.
inline constexpr std::string_view kDefaultPlanner = "braid";

/// All planners, in the order in which they are listed to users.
const std::vector<PlannerEntry>& planners();
/// "the planner phaze", "the planners piper, no-dp, tp-only": those for which `is` holds.
std::string planners_text(const std::function<bool(const PlannerEntry&)>& is);
/// Throws Error, which names the option, with the known names.
const PlannerEntry& find_planner(std::string_view name, const char* option = "--planner");

/// The planner `braid` on any system: plan_uniform (uniform/uniform_planner.h) on homogeneous ones;
/// mixed clusters and bandwidth matrices have one of their own (mixed/mixed_planner.h).
Outcome plan_braid(const Job& job, const System& system, const SpaceOptions& space,
                   const Budget& budget, const Progress& progress = {});

}  // namespace braid
