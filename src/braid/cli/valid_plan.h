#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// Reads a plan that can be timed, drawn and exported: one that the verifier has nothing against,
/// but that it may need more memory than there is, or not be what it claims (then a warning goes to
/// stderr). Throws Error
/// with the first check that fails.
Plan read_valid_plan(const std::string& path);

}  // namespace braid
