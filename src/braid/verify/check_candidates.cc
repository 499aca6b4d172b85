#include "braid/verify/check_candidates.h"

#include <fmt/format.h>

#include "braid/verify/verify.h"

namespace braid {

Claims claims_of(const Candidate& candidate, const LowerBound& bound) {
  return {candidate.metrics.iteration_time_s, candidate.metrics.peak_memory_bytes, bound.compute_s,
          bound.memory_s, bound.network_s};
}

std::string claim_and_check(Candidate& candidate, const LowerBound& bound) {
  candidate.plan.claims = claims_of(candidate, bound);
  for (const Check& check : verify(candidate.plan).checks) {
    if (!check.holds) return fmt::format("fails the check '{}': {}", check.name, check.detail);
  }
  return "";
}

std::string claim_and_check(Outcome& outcome) {
  std::string failure;
  const auto check = [&](Candidate& candidate) {
    const std::string fault = claim_and_check(candidate, outcome.physical_bound);
    if (failure.empty()) failure = fault;
  };
  for (Candidate& candidate : outcome.candidates) check(candidate);
  if (outcome.recommendation && outcome.recommendation->fastest) {
    check(*outcome.recommendation->fastest);
  }
  return failure;
}

}  // namespace braid
