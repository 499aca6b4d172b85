#pragma once

#include <string>

#include "braid/plan/outcome.h"

namespace braid {

/// What a plan's planner, or its evaluation, has for it.
Claims claims_of(const Candidate& candidate, const LowerBound& bound);

/// Lets every plan of an outcome claim the time, memory and bound that its planner has for it, and
/// puts each to verify(). Returns the first check that one fails, "fails the check 'memory': …";
/// empty when all hold.
std::string claim_and_check(Outcome& outcome);
/// The same of one candidate, of a job with this bound.
std::string claim_and_check(Candidate& candidate, const LowerBound& bound);

}  // namespace braid
