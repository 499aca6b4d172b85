#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/evaluate/change_chain.h"
#include "braid/evaluate/stated_plan.h"
#include "braid/plan/outcome.h"
#include "braid/plan/run_costs.h"

namespace braid {

/// A stated configuration beside the best one for the same job, trainer and devices.
struct ConfigurationEvaluation {
  StatedPlan mine;
  LowerBound bound;
  std::vector<std::string> not_given;     ///< What was taken for what the user did not say.
  std::vector<std::string> not_known;     ///< Arguments that nothing is known of.
  std::vector<std::string> not_modelled;  ///< What the user says and no figure depends on.
  std::vector<std::string> assumptions;
  std::vector<std::string> trainer_notes;    ///< As those of Outcome.
  std::optional<RunCosts> run, run_of_best;  ///< Where a run was asked for.
  std::optional<Outcome> search;             ///< For the best; nullopt: not asked for.
  /// The trainer does not do what it usually does, in mine and so in the best.
  bool unusual_trainer = false;
  /// From mine to the best; empty where the best is none that can be stated (stages of different
  /// forms, searched shardings).
  std::vector<ConfigurationChange> changes;

  /// Null: none was found.
  const Candidate* best() const {
    return search && !search->candidates.empty() ? &search->candidates.front() : nullptr;
  }
};

/// For people: both configurations as a table, whether mine fits, where the time goes in both and
/// by how much they differ, the memory of the stages, and the changes from one to the other.
std::string evaluation_text(const ConfigurationEvaluation& evaluation);

}  // namespace braid
