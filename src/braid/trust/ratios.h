#pragma once

#include <optional>
#include <vector>

#include "braid/trust/evidence.h"
#include "braid/trust/interval.h"

namespace braid {

/// Two measured runs of one job on the same devices by the same trainer that split it differently.
struct RatioError {
  unsigned changed =
      0;             ///< Which of tp, pp, cp, ep, dp and the micro-batch differ, a bit for each.
  double error = 0;  ///< Size of the difference of their errors: of the ratio of their times.
  std::size_t family = 0;  ///< Pairs of one job have the same.
};

/// All such pairs of the evidence. Linear in runs and pairs, but for a sort.
std::vector<RatioError> ratio_errors(const Evidence& runs);

/// Those of the evidence that comes with the program.
const std::vector<RatioError>& ratio_errors();

/// Between what factors of the predicted ratio of the times of two plans of one job four fifths of
/// measured ratios lie. What both have in common cancels in a ratio, which is why it is surer than
/// either time where the plans differ in little. Each job has one vote; a pair counts e times less
/// for each of the six that differs in one of both pairs alone; one more job is as far off as the
/// worst pair. Nullopt without pairs. Cost: n log n in the pairs.
std::optional<ErrorInterval> ratio_interval(const JobTraits& a, const JobTraits& b,
                                            const std::vector<RatioError>& pairs);

}  // namespace braid
