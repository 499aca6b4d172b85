#pragma once

#include "braid/cli/plan_profile.h"

namespace braid {

/// Places the layers of Phaze's published inputs, for each profile, memory and way to keep
/// activations that the options name, and prints the best placement, with those of each beside it
/// when there are several. Under corrected rules also what the published program would have chosen
/// and what that takes in truth. The plan that the best placement stands for is written to
/// `output`, if not empty. Returns the exit status. Throws Error.
int plan_phaze_profile(const ProfileOptions& options, bool json, const std::string& output,
                       const SearchProgress& progress = {});

/// The best of these placements as an outcome, not checked yet.
CheckedOutcome phaze_outcome(const ProfileOptions& options, const SearchProgress& progress);

}  // namespace braid
