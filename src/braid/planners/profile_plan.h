#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/planners/phaze/placement.h"
#include "braid/planners/piper/problem.h"
#include "braid/profile/profile.h"
#include "braid/system/system.h"

namespace braid {

/// What a published planner's answer, found from a profile by its own rules, is to run on.
struct ProfileTarget {
  const Profile* profile = nullptr;  ///< In seconds, passes apart (pass_split.h).
  int micro_batch = 1;               ///< Samples.
  Precision precision;
  const System* system = nullptr;
  std::string planner;  ///< Named in plans.
  std::string source;   ///< The profile's file.
};

/// A plan, or why there is none.
struct ProfilePlan {
  std::optional<Plan> plan;
  std::string reason;  ///< One line; empty with a plan.
  std::vector<std::string> assumptions;
};

/// The plan of a solution of the piper problem that the profile is: stages with their replicas,
/// tensor parallelism and each layer's option, 1F1B. A stage that mixes layers with and without
/// sequence parallelism hands over whole tensors. None where a stage's replicas do not divide the
/// micro-batches of a batch (PiperSplit::ideal, uneven). Costs: linear in layers and options.
ProfilePlan plan_of_solution(const ProfileTarget& target, const PiperProblem& problem,
                             const PiperSolution& solution);

/// The plan of a placement of Phaze's: `dp` pipelines in which stages run their layers one after
/// another, 1F1B. With recomputation a stage but the last keeps the tensors that enter it, and has
/// room for its layers' activations once. None where branches of a stage have devices of their own
/// or the pipelines do not divide the micro-batches. `target.profile` gives the model's name and
/// the sequence; costs are those of the problem.
ProfilePlan plan_of_placement(const ProfileTarget& target, const PhazeProblem& problem,
                              const PhazePlacement& placement);

/// An input of Phaze's program as a profile, in seconds: for each width the options "stash" and
/// "recompute", as piper_from_phaze() has them. Its micro-batch counts as one sample.
Profile profile_of_phaze(const PhazeProblem& problem);

}  // namespace braid
