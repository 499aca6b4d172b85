#include "braid/trust/interval.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/trust/likeness.h"
#include "braid/trust/weighted_quantile.h"

namespace braid {
namespace {

constexpr double kNearScale = 0.5, kKindScale = 3;
/// What all sources count together, in runs just like the job.
constexpr double kFarWeight = 0.5;
constexpr double kFullSource = 5;  ///< Runs from which on a source counts in full.

double kind_weight(const JobTraits& a, const JobTraits& b) {
  return std::exp(-kind_distance(a, b) / kKindScale);
}

/// What all runs of one source say.
struct SourceErrors {
  std::vector<WeightedError> errors;
  double most = 0, sum = 0;  ///< Of the weights.

  double weight() const {
    const auto count = static_cast<double>(errors.size());
    return most * std::sqrt(std::min(1.0, count / kFullSource));
  }
};

}  // namespace

std::optional<ErrorInterval> time_interval(const JobTraits& job, const Evidence& runs,
                                           const EvidenceFilter& counts) {
  std::vector<WeightedError> errors;
  std::map<std::string, SourceErrors> sources;
  for (const RunError& run : runs) {
    if (counts && !counts(run)) continue;
    errors.push_back({std::abs(run.error), std::exp(-distance_of(job, run.traits) / kNearScale)});
    const double weight = kind_weight(job, run.traits);
    SourceErrors& source = sources[run.source];
    source.errors.push_back({std::abs(run.left_out), weight});
    source.most = std::max(source.most, weight);
    source.sum += weight;
  }
  if (errors.empty()) return std::nullopt;
  double whole = 0;
  for (const auto& [name, source] : sources) whole += source.weight();
  const auto count = static_cast<double>(sources.size());
  const double scale = kFarWeight / (whole * (1 + 1 / count));
  double most = 0;
  for (const auto& [name, source] : sources) {
    for (const WeightedError& error : source.errors) {
      errors.push_back({error.size, scale * source.weight() * error.weight / source.sum});
      most = std::max(most, error.size);
    }
  }
  errors.push_back({most, scale * whole / count});
  return interval_of(quantile_of(errors));
}

std::optional<ErrorInterval> memory_interval(const JobTraits& job, const Evidence& runs,
                                             const EvidenceFilter& counts) {
  std::vector<WeightedError> errors;
  for (const RunError& run : runs) {
    if (!run.memory || run.traits.trainer != job.trainer || (counts && !counts(run))) continue;
    errors.push_back({std::abs(run.memory_error), kind_weight(job, run.traits)});
  }
  errors.push_back({kInfinity, 1});
  const double size = quantile_of(errors);
  return size < kInfinity ? std::optional(interval_of(size)) : std::nullopt;
}

}  // namespace braid
