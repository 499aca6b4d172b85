#pragma once

#include "braid/profile/profile.h"

namespace braid {

/// The forward pass of an option whose passes are in one figure, listed as its forward pass: what
/// the option that recomputes everything takes more (`recomputed`), at most all of it, or a third
/// where there is none (null). Of an option that has a backward pass, its forward pass. In the unit
/// of the options.
double forward_pass_s(const Option& plain, const Option* recomputed);

/// Tells the passes of all such options apart, in both directions: an option with recomputation
/// repeats what it takes more than the quickest plain one of its degrees, or a quarter. Sums stay.
Profile with_passes_apart(Profile profile);

/// The profile with all times in seconds, of units of `time_unit_s`.
Profile in_seconds(Profile profile, double time_unit_s);

}  // namespace braid
