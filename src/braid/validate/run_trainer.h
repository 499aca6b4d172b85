#pragma once

#include "braid/plan/trainer_file.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A measured run as conditions of trainers' files see it: its words, the version at the end of the
/// trainer's name, and the month of its source where that is on arXiv.
TrainerSubject subject_of(const MeasuredRun& run);

/// The trainer of the catalogue that made the run (trainer_of_run).
const TrainerFile& trainer_file_of(const MeasuredRun& run);

/// What that trainer usually does where the row is silent.
TrainerUsual usual_of(const MeasuredRun& run);

}  // namespace braid
