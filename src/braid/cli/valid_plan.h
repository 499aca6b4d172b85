#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// A plan that can be timed, drawn and exported: one that the verifier has nothing against, but
/// that it may need more memory than there is, or not be what it claims.
struct ValidPlan {
  Plan plan;
  std::vector<std::string> warnings;  ///< What the verifier has against it.
  /// For a page of the plan: these, and what its file says of the trainer (Alternatives::notes).
  std::vector<std::string> notes;
};

/// Throws Error with the first check that fails, naming the file.
ValidPlan read_valid_plan(const std::string& path);

/// The same of a plan that was read from this file.
ValidPlan valid_plan(Plan plan, const std::string& path);

/// Writes warnings to stderr, a line each. For when the work is done: what fails says why in one
/// line.
void print_warnings(const std::vector<std::string>& warnings);

}  // namespace braid
