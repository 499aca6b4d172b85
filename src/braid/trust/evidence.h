#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "braid/trust/job_traits.h"

namespace braid {

/// How far off the prediction of one measured run was. Errors are log(measured / predicted).
struct RunError {
  std::string source;  ///< Who measured it.
  std::string model;   ///< Name for people.
  JobTraits traits;
  double error = 0;     ///< With the catalogue's figures.
  double left_out = 0;  ///< With figures fitted to all sources but this one.
  double memory_error = 0;
  bool memory = false;  ///< Whether the peak of memory was measured.
  friend bool operator==(const RunError&, const RunError&) = default;
};

using Evidence = std::vector<RunError>;

/// What runs of one job on the same devices by the same trainer share, to compare and sort by;
/// refers to `run`.
inline auto job_key(const RunError& run) {
  const JobTraits& of = run.traits;
  return std::tie(run.source, run.model, of.chip, of.trainer, of.format, of.devices, of.parameters,
                  of.tokens);
}

/// The evidence that comes with the program: data/evidence/training.csv, written by
/// `braid calibrate RUNS --evidence FILE`.
const Evidence& evidence();

/// A file of evidence (docs/file-formats.md, "Evidence"). Throws Error with file and line: a column
/// that is missing, a figure that is none.
Evidence parse_evidence(std::string_view text, const std::string& file);
/// Its text; reading it again gives the figures to four digits.
std::string evidence_text(const Evidence& runs);

}  // namespace braid
