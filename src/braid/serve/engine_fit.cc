#include "braid/serve/engine_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "braid/base/least_squares.h"
#include "braid/base/quantile.h"

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
  errors.tpot_median = tpot.empty() ? 0 : median(std::move(tpot));
  errors.ttft_median = ttft.empty() ? 0 : median(std::move(ttft));
  return errors;
}

namespace {

/// What is left of one run: logarithms of measured over predicted times; of TTFT without the wait
/// for room to decode, which goes by TPOT.
struct LeftOver {
  CorrectedRuns kind;
  double tpot = 0, ttft = 0;
  bool waits = false;  ///< Half of TTFT and more was that wait, so that `ttft` says little.
};

LeftOver left_of(const CorrectedRuns& kind, const ServedRow& measured, const ServingTimes& times) {
  const double longer = measured.tpot_s / times.tpot_s;
  const double rest_s = measured.ttft_s - longer * times.room_s;
  LeftOver left{kind, std::log(longer), 0, rest_s < measured.ttft_s / 2};
  if (!left.waits) left.ttft = std::log(rest_s / (times.ttft_s - times.room_s));
  return left;
}

/// The kinds of corrections that hold for a run, the widest first.
std::array<CorrectedRuns, 4> kinds_of(const CorrectedRuns& run) {
  return {CorrectedRuns{run.disaggregated, "", "", ""},
          CorrectedRuns{run.disaggregated, run.chip, "", ""},
          CorrectedRuns{run.disaggregated, "", run.model, ""}, run};
}

/// The median, each value counting exp(-value / 2), drawn to 0 by as many runs as `runs` at 0.
double drawn_median(std::vector<double> values, double runs) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  double whole = 0;
  for (const double value : values) whole += std::exp(-value / 2);
  double below = 0;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) {
    below += std::exp(-value / 2);
    if (below >= whole / 2) return value * count / (count + runs);
  }
  return values.back();
}

using Corrections = std::map<CorrectedRuns, TimeFactors>;

TimeFactors product_of(const Corrections& corrections, const CorrectedRuns& run) {
  TimeFactors product;
  for (const CorrectedRuns& kind : kinds_of(run)) {
    const auto found = corrections.find(kind);
    if (found == corrections.end()) continue;
    product.tpot *= found->second.tpot;
    product.ttft *= found->second.ttft;
  }
  return product;
}

Corrections fitted_corrections(const std::vector<LeftOver>& runs) {
  constexpr int kPasses = 3;
  constexpr double kTpotRuns = 3, kTtftRuns = 8;
  Corrections corrections;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::size_t level = 0; level < kinds_of({}).size(); ++level) {
      std::map<CorrectedRuns, std::pair<std::vector<double>, std::vector<double>>> left;
      for (const LeftOver& run : runs) {
        const CorrectedRuns kind = kinds_of(run.kind)[level];
        const TimeFactors all = product_of(corrections, run.kind);
        const TimeFactors own = corrections[kind];
        auto& [tpot, ttft] = left[kind];
        tpot.push_back(run.tpot - std::log(all.tpot / own.tpot));
        if (!run.waits) ttft.push_back(run.ttft - std::log(all.ttft / own.ttft));
      }
      for (auto& [kind, values] : left) {
        corrections[kind] = {std::exp(drawn_median(std::move(values.first), kTpotRuns)),
                             std::exp(drawn_median(std::move(values.second), kTtftRuns))};
      }
    }
  }
  return corrections;
}

/// One engine's rows, and what is known of its corrections.
struct EngineRows {
  const ServedRuns* runs = nullptr;
  std::vector<std::size_t> rows;
  std::vector<TimeFactors> factors;  ///< By row.

  std::vector<LeftOver> left_over(const EngineFigures& figures) const {
    std::vector<LeftOver> left;
    left.reserve(rows.size());
    for (const std::size_t row : rows) {
      left.push_back(
          left_of(runs->kind_of(row), runs->rows()[row], runs->predict(row, figures, {}).times));
    }
    return left;
  }
};

/// Residuals change with the factors of `of`, which must stay.
LeastSquares problem_of(const EngineRows* of) {
  LeastSquares problem;
  for (const EngineFigureField& field : engine_figure_fields()) {
    problem.figures.push_back({field.least, field.most, field.start, 1});
  }
  for (std::size_t i = 0; i < of->rows.size(); ++i) {
    problem.weights.push_back(1);
    problem.weights.push_back(kTtftWeight);
  }
  problem.prior_weight = kPriorWeight;
  problem.loss = smooth_loss(kLargeError);
  problem.residuals = [of](const std::vector<double>& at) {
    const EngineFigures figures = unpacked(at);
    std::vector<double> residuals;
    residuals.reserve(2 * of->rows.size());
    for (std::size_t i = 0; i < of->rows.size(); ++i) {
      const ServedRow& measured = of->runs->rows()[of->rows[i]];
      const ServingTimes times =
          corrected(of->runs->predict(of->rows[i], figures, {}).times, of->factors[i]);
      residuals.push_back(std::log(times.tpot_s / measured.tpot_s));
      residuals.push_back(std::log(times.ttft_s / measured.ttft_s));
    }
    return residuals;
  };
  return problem;
}

}  // namespace

FittedEngine fitted_engine(const ServedRuns& runs, const std::vector<std::size_t>& rows) {
  constexpr int kTurns = 4;
  EngineRows of;
  of.runs = &runs;
  for (const std::size_t row : rows) {
    if (runs.predict(row).reason.empty()) of.rows.push_back(row);
  }
  of.factors.resize(of.rows.size());
  std::vector<double> at;
  for (const EngineFigureField& field : engine_figure_fields()) at.push_back(field.start);
  if (of.rows.empty()) return {unpacked(at), {}};
  const LeastSquares problem = problem_of(&of);
  Corrections corrections;
  for (int turn = 0; turn < kTurns; ++turn) {
    at = descend(problem, std::move(at), {}).figures;
    corrections = fitted_corrections(of.left_over(unpacked(at)));
    for (std::size_t i = 0; i < of.rows.size(); ++i) {
      of.factors[i] = product_of(corrections, runs.kind_of(of.rows[i]));
    }
  }
  FittedEngine fitted{unpacked(at), {}};
  for (const auto& [kind, factors] : corrections) fitted.corrections.push_back({kind, factors});
  return fitted;
}

std::size_t configuration_fold(const ServedRow& row, std::size_t folds) {
  const auto degrees = [](const RowWorkers& of) {
    const ServingLayout& on = of.layout;
    return fmt::format("{} {} {} {} {} {}", of.workers, on.tp, on.pp, on.dp, on.moe_tp, on.moe_ep);
  };
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {}", row.model, row.precision, row.system, row.engine,
                  row.disaggregated, row.input_tokens, row.output_tokens, degrees(row.worker),
                  degrees(row.prefill), degrees(row.decode));
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a.
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::size_t>((hash ^ hash >> 29) % folds);
}

std::vector<ServedPrediction> held_out_predictions(const ServedRuns& runs, std::size_t folds) {
  std::vector<ServedPrediction> predictions(runs.rows().size());
  std::map<int, std::vector<std::vector<std::size_t>>> engines;
  for (std::size_t row = 0; row < runs.rows().size(); ++row) {
    predictions[row] = runs.predict(row);
    auto& parts = engines.try_emplace(runs.engine_of(row), folds).first->second;
    parts[configuration_fold(runs.rows()[row], folds)].push_back(row);
  }
  engines.erase(-1);
  for (const auto& [engine, parts] : engines) {
    for (std::size_t fold = 0; fold < folds; ++fold) {
      std::vector<std::size_t> others;
      for (std::size_t other = 0; other < folds; ++other) {
        if (other == fold) continue;
        others.insert(others.end(), parts[other].begin(), parts[other].end());
      }
      const FittedEngine fitted = fitted_engine(runs, others);
      for (const std::size_t row : parts[fold]) {
        predictions[row] = runs.predict(row, fitted.figures, fitted.corrections);
      }
    }
  }
  return predictions;
}

std::string fitted_text(const FittedEngine& fitted, const std::string& source) {
  std::string text = "figures:\n";
  for (const EngineFigureField& field : engine_figure_fields()) {
    const double value = fitted.figures.*field.field;
    const bool time = std::string_view(field.name).ends_with("_s");
    text += fmt::format("  {}: {{is: {}, source: '{}'}}\n", field.name,
                        time ? fmt::format("{:.4g} us", 1e6 * value) : fmt::format("{:.4g}", value),
                        source);
  }
  if (fitted.corrections.empty()) return text;
  text += fmt::format("corrections:\n  source: '{}'\n  factors:\n", source);
  for (const EngineCorrection& one : fitted.corrections) {
    text += fmt::format("    - {{mode: {}", one.of.disaggregated ? "disaggregated" : "aggregated");
    if (!one.of.chip.empty()) text += ", chip: " + one.of.chip;
    if (!one.of.model.empty()) text += ", model: " + one.of.model;
    if (!one.of.format.empty()) text += ", format: " + one.of.format;
    text += fmt::format(", tpot: {:.3g}, ttft: {:.3g}}}\n", one.factors.tpot, one.factors.ttft);
  }
  return text;
}

}  // namespace braid
