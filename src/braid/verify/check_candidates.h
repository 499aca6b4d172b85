#pragma once

#include <string>

#include "braid/plan/outcome.h"

namespace braid {

/// Lets every plan of an outcome claim the time, memory and bound that its planner has for it, and
/// puts each to verify(). Returns the first check that one fails, "fails the check 'memory': …";
/// empty when all hold.
std::string claim_and_check(Outcome& outcome);

}  // namespace braid
