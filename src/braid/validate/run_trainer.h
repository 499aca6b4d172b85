#pragma once

#include "braid/plan/trainer_file.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A measured run as conditions of trainers' files see it: its words, the version at the end of the
/// trainer's name, and the month of its source where that is on arXiv.
TrainerSubject subject_of(const MeasuredRun& run);

/// What the trainer that made the run (trainer_of_run) usually does where the row is silent.
TrainerUsual usual_of(const MeasuredRun& run);

}  // namespace braid
