#pragma once

#include "braid/cli/plan_profile.h"

namespace braid {

/// Places the layers of Phaze's published inputs, for each profile, memory and way to keep
/// activations that the options name, and prints the best placement, with those of each beside it
/// when there are several. Under corrected rules also what the published program would have chosen
/// and what that takes in truth. Returns the exit status. Throws Error.
int plan_phaze_profile(const ProfileOptions& options, bool json,
                       const SearchProgress& progress = {});

}  // namespace braid
