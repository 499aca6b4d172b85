#include "braid/serve/engine_fit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/least_squares.h"

namespace braid {
namespace {

constexpr double kTtftWeight = 0.35;
constexpr double kPriorWeight = 0.3;
constexpr double kLargeError = 0.15;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

EngineFigures unpacked(const std::vector<double>& from) {
  EngineFigures figures;
  const std::vector<EngineFigureField>& fields = engine_figure_fields();
  for (std::size_t i = 0; i < fields.size(); ++i) figures.*fields[i].field = from[i];
  return figures;
}

}  // namespace

ServedErrors served_errors(const std::vector<ServedRow>& runs,
                           const std::vector<ServedPrediction>& predictions,
                           const std::vector<std::size_t>& rows) {
  ServedErrors errors;
  errors.rows = rows.size();
  std::vector<double> tpot, ttft;
  for (const std::size_t i : rows) {
    if (!predictions[i].reason.empty()) continue;
    tpot.push_back(std::abs(predictions[i].times.tpot_s / runs[i].tpot_s - 1));
    ttft.push_back(std::abs(predictions[i].times.ttft_s / runs[i].ttft_s - 1));
  }
  errors.predicted = tpot.size();
  errors.tpot_mean = mean_of(tpot);
  errors.ttft_mean = mean_of(ttft);
  errors.tpot_median = median_of(std::move(tpot));
  errors.ttft_median = median_of(std::move(ttft));
  return errors;
}

EngineFigures fitted_figures(const ServedRuns& runs, const std::vector<std::size_t>& rows) {
  std::vector<std::size_t> used;
  for (const std::size_t row : rows) {
    if (runs.predict(row).reason.empty()) used.push_back(row);
  }
  LeastSquares problem;
  std::vector<double> from;
  for (const EngineFigureField& field : engine_figure_fields()) {
    problem.figures.push_back({field.least, field.most, field.start, 1});
    from.push_back(field.start);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    problem.weights.push_back(1);
    problem.weights.push_back(kTtftWeight);
  }
  problem.prior_weight = kPriorWeight;
  problem.loss = smooth_loss(kLargeError);
  problem.residuals = [&](const std::vector<double>& at) {
    const EngineFigures figures = unpacked(at);
    std::vector<double> residuals;
    residuals.reserve(2 * used.size());
    for (const std::size_t row : used) {
      const ServingTimes times = runs.predict(row, &figures).times;
      residuals.push_back(std::log(times.tpot_s / runs.rows()[row].tpot_s));
      residuals.push_back(std::log(times.ttft_s / runs.rows()[row].ttft_s));
    }
    return residuals;
  };
  return unpacked(descend(problem, std::move(from), {}).figures);
}

std::string figures_text(const EngineFigures& figures, const std::string& source) {
  std::string text = "figures:\n";
  for (const EngineFigureField& field : engine_figure_fields()) {
    const double value = figures.*field.field;
    const bool time = std::string_view(field.name).ends_with("_s");
    text += fmt::format("  {}: {{is: {}, source: '{}'}}\n", field.name,
                        time ? fmt::format("{:.4g} us", 1e6 * value) : fmt::format("{:.4g}", value),
                        source);
  }
  return text;
}

}  // namespace braid
