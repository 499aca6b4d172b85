#pragma once

#include "braid/cli/profile_answer.h"
#include "braid/cli/profile_options.h"
#include "braid/search/progress.h"

namespace braid {

/// Places the layers of Phaze's published inputs, for each profile, memory and choice of kept or
/// recomputed activations that the options name, and prints the best placement, with those of each
/// beside it when there are several. Under corrected rules also what the published program would
/// have chosen and what that takes in truth. The plan that the best placement stands for is written
/// to its file. Returns the exit status. Throws Error.
int plan_phaze_profile(const ProfileOptions& options, const AnswerOutput& to,
                       const Progress& progress);

/// The best of these placements as an outcome, not checked yet.
CheckedOutcome phaze_outcome(const ProfileOptions& options, const Progress& progress);

}  // namespace braid
