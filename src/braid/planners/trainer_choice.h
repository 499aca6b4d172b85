#pragma once

#include <string>
#include <vector>

#include "braid/plan/trainer_file.h"
#include "braid/planners/registry.h"

namespace braid {

/// What the trainer of a job has to run. The job has a graph, or layers of its own.
struct TrainerNeeds {
  const Job* job = nullptr;
  const System* system = nullptr;
  const SpaceOptions* space = nullptr;        ///< What is fixed.
  std::vector<const PlannerEntry*> planners;  ///< That will plan it.
  /// Someone may have taught the trainer more than it comes with: models and precisions.
  bool own_code = false;
};

/// Why the trainer cannot run any of it, such as "trains language models only"; empty when it can.
std::string refusal(const TrainerFile& trainer, const TrainerNeeds& needs);

/// The trainer that is taken where none is named: default_trainer(), but kIdealTrainer where that
/// cannot run the job or a chip is a design (Chip::accelerator).
const TrainerFile& usual_trainer(const TrainerNeeds& needs);

/// What a reader of figures that hold for `trainer` has to know before them, a sentence each:
///   ideal stands for the best that a trainer can do, and is used because megatron trains …
///   As it comes, megatron has no script for t5-large; assumed: you add that to it yourself.
/// The first where nobody `named` the trainer and it is kIdealTrainer for want of the default one;
/// the second of what runs all the same though no plan of it could be written (job_refusal), as
/// nobody named the trainer or with needs.own_code.
std::vector<std::string> trainer_notes(const TrainerFile& trainer, const TrainerNeeds& needs,
                                       bool named);

/// Throws Error, with those of the catalogue that can, when the trainer cannot run the job; unless
/// needs.own_code also when no plan of it could be written.
void check_trainer(const TrainerFile& trainer, const TrainerNeeds& needs);

/// The trainer of that name or file; empty: the usual one. Throws Error as check_trainer.
TrainerFile choose_trainer(const std::string& name, const TrainerNeeds& needs);

/// What the trainer does of its own accord where the job does not say.
TrainerUsual usual_of(const TrainerFile& trainer, const System& system, const Job& job);

/// Lets the trainer run the job: what it does, what it can be told, formats of gradients. The job's
/// graph has still to be made what it runs (adapt_graph).
void set_trainer(const TrainerFile& trainer, const System& system, Job& job, SpaceOptions& space);

}  // namespace braid
