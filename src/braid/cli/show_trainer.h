#pragma once

#include "braid/plan/trainer_file.h"

namespace braid {

/// Prints what a trainer can be told and what it does, each with its source. Returns the exit
/// status.
int show_trainer(const TrainerFile& trainer, bool json);

}  // namespace braid
