#pragma once

#include <span>
#include <vector>

#include "braid/trust/evidence.h"
#include "braid/trust/interval.h"
#include "braid/tune/belief.h"

namespace braid {

/// How the errors of predictions, log(measured / predicted), hang together within one job, as
/// variances: all its plans share one, alike plans are off alike, and each has one of its own.
struct ErrorStructure {
  double common = 0;
  double spread = 0;  ///< Of what plans share by likeness: spread · exp(-distance / reach).
  double reach = 1;
  double own = 0;
};

/// How far apart two plans of one job are: the sum of the doublings between their degrees and
/// micro-batches.
double plan_distance(const JobTraits& a, const JobTraits& b);

/// The structure of the left-out errors of measured runs. Half the mean square of the difference of
/// the errors of two plans of one job, by their distance (a variogram; Matheron 1963), is `own +
/// spread · (1 - exp(-distance / reach))`, fitted by least squares, each distance weighing as many
/// pairs as it has and `reach` at most the greatest. Runs are of one job where source, model, chip,
/// trainer, format, devices and tokens are the same. Cost: pairs of runs.
ErrorStructure error_structure(const Evidence& runs);

/// What is believed of the logarithms of the times of plans of one job that are predicted to take
/// `predicted_s`. With `intervals`, one for each plan, kIntervalLevel of the belief lies within
/// them: in place of `errors.common` plans share what their intervals are wider than plans of one
/// job differ by; where one is narrower, all of that plan's errors shrink.
Belief belief_of(std::span<const JobTraits> plans, std::span<const double> predicted_s,
                 const ErrorStructure& errors, std::span<const ErrorInterval> intervals = {});

}  // namespace braid
