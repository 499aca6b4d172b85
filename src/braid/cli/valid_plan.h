#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// Reads a plan that can be timed, drawn and exported: one that the verifier has nothing against.
/// Throws Error with the first check that fails.
Plan read_valid_plan(const std::string& path);

}  // namespace braid
