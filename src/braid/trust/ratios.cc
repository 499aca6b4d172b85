#include "braid/trust/ratios.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>

#include "braid/trust/weighted_quantile.h"

namespace braid {
namespace {

unsigned changed(const JobTraits& a, const JobTraits& b) {
  unsigned bits = 0;
  for (double JobTraits::*const of : kSplitTraits) {
    bits = 2 * bits + (a.*of != b.*of ? 1U : 0U);
  }
  return bits;
}

}  // namespace

std::vector<RatioError> ratio_errors(const Evidence& runs) {
  std::vector<const RunError*> sorted;
  sorted.reserve(runs.size());
  for (const RunError& run : runs) sorted.push_back(&run);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RunError* a, const RunError* b) { return job_key(*a) < job_key(*b); });
  std::vector<RatioError> pairs;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && job_key(*sorted[end]) == job_key(*sorted[begin])) ++end;
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
