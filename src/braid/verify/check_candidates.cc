#include "braid/verify/check_candidates.h"

#include <fmt/format.h>

#include "braid/verify/verify.h"

namespace braid {

std::string claim_and_check(Outcome& outcome) {
  const LowerBound& bound = outcome.physical_bound;
  std::string failure;
  for (Candidate& candidate : outcome.candidates) {
    candidate.plan.claims =
        Claims{candidate.metrics.iteration_time_s, candidate.metrics.peak_memory_bytes,
               bound.compute_s, bound.memory_s, bound.network_s};
    for (const Check& check : verify(candidate.plan).checks) {
      if (check.holds || !failure.empty()) continue;
      failure = fmt::format("fails the check '{}': {}", check.name, check.detail);
    }
  }
  return failure;
}

}  // namespace braid
