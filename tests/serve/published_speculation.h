#pragma once

#include <cmath>

#include "braid/serve/speculation.h"

namespace braid::test {

/// Tokens of a round as DFModel counts them (section VIII-B): K · acceptance + 1, whatever the
/// width. Of acceptances between 0 and 1 more than expected_tokens() of a sequence: it counts
/// tokens after a rejected one.
inline double linear_expected_tokens(const Speculation& of) {
  return static_cast<double>(of.draft_tokens) * of.acceptance + 1;
}

/// DFModel's tokens a second of one sequence: linear_expected_tokens() over K, or of a tree 2^K,
/// steps of the draft model and one of the target.
inline double published_tokens_per_s(const Speculation& of, double draft_step_s,
                                     double target_step_s) {
  const auto depth = static_cast<double>(of.draft_tokens);
  const double steps = of.width > 1 ? std::exp2(depth) : depth;
  return linear_expected_tokens(of) / (steps * draft_step_s + target_step_s);
}

}  // namespace braid::test
