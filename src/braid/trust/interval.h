#pragma once

#include <functional>
#include <optional>

#include "braid/trust/evidence.h"

namespace braid {

/// Share of the measurements that an interval is to hold.
inline constexpr double kIntervalLevel = 0.8;
/// Of a normal distribution as large a share lies within so many standard deviations.
inline constexpr double kIntervalDeviations = 1.2815515655446004;

/// Around a predicted figure, as factors of it: symmetric in logarithms.
struct ErrorInterval {
  double low = 1, high = 1;
  double width() const { return high - low; }
};

/// Which runs of the evidence count.
using EvidenceFilter = std::function<bool(const RunError&)>;

/// Between what factors of its prediction four fifths of the measured times of such jobs lie. The
/// errors of two pools are put together, and their quantile is taken:
/// - near runs, with their errors as they are, since the catalogue's figures have seen their like:
///   each counts exp(-2·distance_of);
/// - all sources with their left-out errors, what a job that nobody has measured may be off by. In
///   all they count as much as half a run that is just like the job. A source counts by its most
///   alike run, exp(-kind_distance / 3), and less when it has under five; one more source, as far
///   off as the worst run, stands for the one that the job itself would be.
/// So the interval is that of runs alike where there are some, and grows to that of an unknown
/// source with the distance from them. This is split-conformal, weighted by likeness and by source
/// (Tibshirani et al. 2019; Dunn et al. 2023): no distribution is assumed. Nullopt without
/// evidence. Cost: n log n in the runs.
std::optional<ErrorInterval> time_interval(const JobTraits& job, const Evidence& runs,
                                           const EvidenceFilter& counts = {});

/// The same of the peak of memory, which the trainer decides: from the runs of the job's trainer
/// alone, each counting exp(-kind_distance / 3), and the job itself as one with any error. Nullopt
/// where these are too few for that, under four runs just alike.
std::optional<ErrorInterval> memory_interval(const JobTraits& job, const Evidence& runs,
                                             const EvidenceFilter& counts = {});

}  // namespace braid
