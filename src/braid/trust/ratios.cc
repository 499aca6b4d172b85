#include "braid/trust/ratios.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>

#include "braid/trust/weighted_quantile.h"

namespace braid {
namespace {

/// What two runs of one job share.
auto job_of(const RunError& run) {
  const JobTraits& traits = run.traits;
  return std::tie(run.source, run.model, traits.chip, traits.trainer, traits.format, traits.devices,
                  traits.parameters, traits.tokens);
}

unsigned changed(const JobTraits& a, const JobTraits& b) {
  unsigned bits = 0;
  for (double JobTraits::*const degree :
       {&JobTraits::tp, &JobTraits::pp, &JobTraits::cp, &JobTraits::ep, &JobTraits::dp,
        &JobTraits::micro_batch_tokens}) {
    bits = 2 * bits + (a.*degree != b.*degree ? 1U : 0U);
  }
  return bits;
}

}  // namespace

std::vector<RatioError> ratio_errors(const Evidence& runs) {
  std::vector<const RunError*> sorted;
  sorted.reserve(runs.size());
  for (const RunError& run : runs) sorted.push_back(&run);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RunError* a, const RunError* b) { return job_of(*a) < job_of(*b); });
  std::vector<RatioError> pairs;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && job_of(*sorted[end]) == job_of(*sorted[begin])) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = begin; j < i; ++j) {
        const unsigned bits = changed(sorted[i]->traits, sorted[j]->traits);
        if (bits == 0) continue;
        pairs.push_back({bits, std::abs(sorted[i]->error - sorted[j]->error), begin});
      }
    }
  }
  return pairs;
}

const std::vector<RatioError>& ratio_errors() {
  static const std::vector<RatioError> pairs = ratio_errors(evidence());
  return pairs;
}

std::optional<ErrorInterval> ratio_interval(const JobTraits& a, const JobTraits& b,
                                            const std::vector<RatioError>& pairs) {
  if (pairs.empty()) return std::nullopt;
  const unsigned bits = changed(a, b);
  std::map<std::size_t, double> sums;
  std::vector<WeightedError> errors;
  errors.reserve(pairs.size() + 1);
  double most = 0;
  for (const RatioError& pair : pairs) {
    errors.push_back({pair.error, std::exp(-std::popcount(pair.changed ^ bits))});
    sums[pair.family] += 1;
    most = std::max(most, pair.error);
  }
  double whole = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    errors[i].weight /= sums[pairs[i].family];
    whole += errors[i].weight;
  }
  errors.push_back({most, whole / static_cast<double>(sums.size())});
  return interval_of(quantile_of(errors));
}

}  // namespace braid
