#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/trust/interval.h"

namespace braid {

/// What of a service decides how well its times are known.
struct ServingTraits {
  std::string engine, chip, model, format;
  bool disaggregated = false;
  friend bool operator==(const ServingTraits&, const ServingTraits&) = default;
};

/// How far off the prediction of one measured service was, with what was fitted to services of
/// other configurations: log(measured / predicted).
struct ServingError {
  ServingTraits traits;
  int part = 0;  ///< Services of one configuration are in the same part.
  double tpot = 0, ttft = 0;
  friend bool operator==(const ServingError&, const ServingError&) = default;
};
using ServingEvidence = std::vector<ServingError>;

/// The evidence that comes with the program: data/evidence/serving.csv, written by
/// `braid calibrate RUNS --evidence FILE` from a table of serving runs.
const ServingEvidence& serving_evidence();

/// A file of it (docs/file-formats.md, "Evidence of serving"). Throws Error with file and line.
ServingEvidence parse_serving_evidence(std::string_view text, const std::string& file);
/// Its text; reading it again gives the errors to three digits.
std::string serving_evidence_text(const ServingEvidence& runs);

/// Around predicted times, as factors of them.
struct ServingIntervals {
  ErrorInterval tpot, ttft;
};

/// Between what factors of their predictions four fifths of the measured times of such services
/// lie: split-conformal, weighted by likeness (interval.h). A run counts exp(-2·distance): a step
/// for another mode, engine, chip and model each, half a step for another format; one run just like
/// the service may be as far off as the worst of all. Runs that `counts` refuses do not count. At
/// least one must. Cost: n log n in the runs.
ServingIntervals serving_intervals(const ServingTraits& service, const ServingEvidence& runs,
                                   const std::function<bool(const ServingError&)>& counts = {});

}  // namespace braid
