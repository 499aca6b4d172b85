#include "braid/trust/serving_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "braid/base/csv.h"
#include "braid/base/embedded_file.h"
#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trust/evidence_row.h"
#include "braid/trust/weighted_quantile.h"

namespace braid {

std::span<const EmbeddedFile> embedded_serving_evidence();

namespace {

double distance_of(const ServingTraits& a, const ServingTraits& b) {
  double steps = 0;
  if (a.disaggregated != b.disaggregated) ++steps;
  if (a.engine != b.engine) ++steps;
  if (a.chip != b.chip) ++steps;
  if (a.model != b.model) ++steps;
  if (a.format != b.format) steps += 0.5;
  return steps;
}

ErrorInterval interval_among(std::vector<WeightedError> errors) {
  double worst = 0;
  for (const WeightedError& error : errors) worst = std::max(worst, error.size);
  errors.push_back({worst, 1});
  return interval_of(quantile_of(errors));
}

/// An error, of times that are not off without measure.
double error_of(const EvidenceRow& row, const char* column) {
  const double value = row.number(column);
  if (std::abs(value) <= 1e3) return value;
  throw Error(Where{row.table.file, row.row.line, column},
              in_quotes(row.text(column)) + " is no figure", EvidenceRow::kRemedy);
}

}  // namespace

ServingEvidence parse_serving_evidence(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  ServingEvidence runs;
  runs.reserve(table.rows.size());
  for (const CsvRow& row : table.rows) {
    const EvidenceRow of{table, row};
    ServingError run;
    run.traits = {of.text("engine"), of.text("chip"), of.text("model"), of.text("format"),
                  of.text("mode") == "disaggregated"};
    run.part = static_cast<int>(error_of(of, "part"));
    run.tpot = error_of(of, "tpot");
    run.ttft = error_of(of, "ttft");
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string serving_evidence_text(const ServingEvidence& runs) {
  std::string text = "engine,mode,chip,model,format,part,tpot,ttft\n";
  for (const ServingError& run : runs) {
    const ServingTraits& of = run.traits;
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f}\n", csv_field(of.engine),
                        of.disaggregated ? "disaggregated" : "aggregated", csv_field(of.chip),
                        csv_field(of.model), csv_field(of.format), run.part, run.tpot, run.ttft);
  }
  return text;
}

const ServingEvidence& serving_evidence() {
  static const ServingEvidence runs =
      parse_serving_evidence(embedded_serving_evidence().front().text, "data/evidence/serving.csv");
  return runs;
}

ServingIntervals serving_intervals(const ServingTraits& service, const ServingEvidence& runs,
                                   const std::function<bool(const ServingError&)>& counts) {
  std::vector<WeightedError> tpot, ttft;
  tpot.reserve(runs.size() + 1);
  ttft.reserve(runs.size() + 1);
  for (const ServingError& run : runs) {
    if (counts && !counts(run)) continue;
    const double weight = std::exp(-2 * distance_of(service, run.traits));
    tpot.push_back({std::abs(run.tpot), weight});
    ttft.push_back({std::abs(run.ttft), weight});
  }
  return {interval_among(std::move(tpot)), interval_among(std::move(ttft))};
}

}  // namespace braid
