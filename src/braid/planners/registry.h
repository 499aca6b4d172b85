#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/planners/job/braid_space.h"
#include "braid/planners/job/family_options.h"
#include "braid/planners/job/job.h"

namespace braid {

//   Job job; job.graph = &graph; job.global_batch = 128;
//   const PlannerEntry& planner = find_planner(kDefaultPlanner);
//   const Outcome outcome = planner.plan(job, system, SpaceOptions{}, Budget{}, {});
//   if (!outcome.candidates.empty()) outcome.candidates.front().plan;

/// What any planner may be told: the space, which plan of it to put first, and what is for planners
/// of one family alone.
struct PlannerOptions : SpaceOptions {
  PlannerOptions() = default;
  PlannerOptions(SpaceOptions space) : SpaceOptions(std::move(space)) {}  // NOLINT: a space is one

  Preference preference = Preference::fastest;  ///< Of those that `recommend`.
  FamilyWords own;                              ///< Of PlannerEntry::family_options.
};

struct PlannerEntry {
  std::string_view name;
  std::string_view description;
  Outcome (*plan)(const Job&, const System&, const PlannerOptions&, const Budget&, const Progress&);
  bool heterogeneous_stages = false;  ///< Its stages have parallel forms of their own.
  bool compared = true;               ///< Compared with others where none are named.
  const FamilyOptions* family_options =
      nullptr;                  ///< What it and its family alone are told; null: none.
  bool recommends = false;      ///< May propose a plan that is easier to run than the fastest.
  bool bounds_systems = false;  ///< A search over systems (explore) has bounds for its plans.
  bool recomputes_all = false;  ///< Its plans recompute all layers alike.
  /// The time that it makes least, where that is not the simulated one: "Phaze's time of a batch".
  std::string_view own_time = "";
};

/// The planner where none is named.
inline constexpr std::string_view kDefaultPlanner = "braid";

/// All planners, in the order in which they are listed to users.
const std::vector<PlannerEntry>& planners();
/// "the planner phaze", "the planners piper, no-dp, tp-only": those for which `is` holds.
std::string planners_text(const std::function<bool(const PlannerEntry&)>& is);
/// What planners alone are told, by family, in the order in which these are listed.
std::vector<const FamilyOptions*> family_options();
/// Throws Error, which names the option, with the known names.
const PlannerEntry& find_planner(std::string_view name, const char* option = "--planner");

/// The planner `braid` on any system: plan_uniform (uniform/uniform_planner.h) on homogeneous ones;
/// mixed clusters and bandwidth matrices have one of their own (mixed/mixed_planner.h).
Outcome plan_braid(const Job& job, const System& system, const BraidSpace& space,
                   const Budget& budget, const Progress& progress = {});

}  // namespace braid
