#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/rank_statistics.h"

#include "base/reference_files.h"
#include "papers/amp/cost.h"
#include "planners/amp_experiments.h"

namespace braid {
namespace {

constexpr AmpRules kProgram{.average_devices = true};

/// Li et al. 2022, all strategies of their three settings: layer and handover times as their
/// program worked them out, and its predictions, which are recorded to four digits.
TEST(AmpReference, GivesTheProgramsPredictions) {
  const std::string folder = reference_file("reference/amp");
  if (folder.empty()) GTEST_SKIP() << "reference data not present";
  std::map<std::string, AmpExperiment> experiments;
  for (const char* name : {"homogeneous", "het_cluster", "het_model"}) {
    experiments.emplace(name, amp_experiment(name, folder));
  }
  const Document document = Document::parse_file(folder + "/layer_assignment_instances.json");
  int count = 0;
  for (const Value& instance : document.root().elements()) {
    const AmpExperiment& experiment =
        experiments.at(std::string(instance["experiment"].as_string()));
    const AmpStrategy strategy = in_rank_order(static_cast<std::int32_t>(instance["pp"].as_int()),
                                               static_cast<std::int32_t>(instance["dp"].as_int()),
                                               static_cast<std::int32_t>(instance["tp"].as_int()),
                                               static_cast<std::int32_t>(instance["mbs"].as_int()));
    const AmpPipeline pipeline = amp_pipeline(experiment.model, experiment.cluster, strategy,
                                              experiment.global_batch, kProgram);
    EXPECT_EQ(pipeline.chain.micro_batches, instance["B"].as_int());
    const auto layers = instance["cost_e"].elements();
    ASSERT_EQ(layers.size(), pipeline.chain.layers());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const double time_s = layers[l].as_double();
      ASSERT_NEAR(pipeline.chain.stages.front().time_s(l, l + 1), time_s, 1e-12);
    }
    std::size_t at = 0;
    for (const Value& row : instance["cost_c"].elements()) {
      for (const Value& time : row.elements()) {
        // The program keeps bandwidths in single precision.
        ASSERT_NEAR(pipeline.chain.boundary_s[at++], time.as_double(), 1e-6 * time.as_double());
      }
    }
    Ends ends;
    for (const Value& size : instance["amp_partition"].elements()) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::int32_t>(size.as_int()));
    }
    const AmpCost cost = amp_cost(experiment.model, experiment.cluster, strategy,
                                  experiment.global_batch, ends, kProgram);
    EXPECT_NEAR(cost.pipeline_s, instance["amp_obj"].as_double(), 1e-6 * cost.pipeline_s);
    EXPECT_NEAR(cost.total_s(), instance["amp_total"].as_double(), 6e-5) << count;
    const auto best = assign_layers(pipeline.chain);
    ASSERT_TRUE(best.has_value());
    EXPECT_LE(best->pipeline_s, cost.pipeline_s * (1 + 1e-12));
    ++count;
  }
  EXPECT_EQ(count, 171);
}

struct Ranking {
  double correlation = 0;  ///< Of finished runs.
  double regret[3] = {};   ///< Of the top 1, 3 and 5 of all runs; failed ones use up places.
  double error = 0;        ///< Mean absolute, of finished runs.
};

Ranking ranking(const std::vector<AmpTrial>& trials, const std::vector<double>& predicted) {
  Ranking result;
  std::vector<double> finished, of_finished, actual;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    actual.push_back(trials[i].finished ? trials[i].measured_s
                                        : std::numeric_limits<double>::infinity());
    if (!trials[i].finished) continue;
    finished.push_back(trials[i].measured_s);
    of_finished.push_back(predicted[i]);
    result.error += std::abs(predicted[i] / trials[i].measured_s - 1);
  }
  result.error /= static_cast<double>(finished.size());
  result.correlation = rank_correlation(of_finished, finished);
  const std::size_t tops[3] = {1, 3, 5};
  for (int i = 0; i < 3; ++i) result.regret[i] = top_regret(predicted, actual, tops[i]);
  return result;
}

std::string summary(const Ranking& ranking) {
  return fmt::format("rank correlation {:.3f}, regret {:.1f} {:.1f} {:.1f} %, error {:.1f} %",
                     ranking.correlation, 100 * ranking.regret[0], 100 * ranking.regret[1],
                     100 * ranking.regret[2], 100 * ranking.error);
}

/// The order of the measured runs. AMP's own figures are those of its recorded predictions.
TEST(AmpReference, OrdersMeasuredRunsBetterThanAmp) {
  const std::string folder = reference_file("reference/amp");
  if (folder.empty()) GTEST_SKIP() << "reference data not present";
  struct Limits {
    double correlation = 0;
    double error = 0;  ///< Mean absolute.
    double top_three_regret = 0, top_five_regret = 0;
    int foreseen = 0;  ///< Of the failures.
    int refused = 0;   ///< Of the runs that finished.
  };
  const std::map<std::string, Limits> experiments = {
      {"homogeneous", {0.97, 0.12, 1e-9, 1e-9, 3, 0}},
      {"het_cluster", {0.8, 0.3, 0.15, 0.1, 1, 2}},
      {"het_model", {0.95, 0.18, 1e-9, 1e-9, 15, 0}}};
  for (const auto& [name, limits] : experiments) {
    const AmpExperiment experiment = amp_experiment(name, folder);
    const std::vector<AmpTrial> trials = amp_trials(experiment, folder);
    if (trials.empty()) continue;  // Kept back.
    std::vector<double> theirs, ours, with_memory;
    int foreseen = 0, refused = 0;
    for (const AmpTrial& trial : trials) {
      const AmpForecast forecast =
          amp_forecast(experiment.physical, experiment.system, trial, experiment.global_batch);
      theirs.push_back(trial.program_s);
      ours.push_back(forecast.iteration_s);
      with_memory.push_back(forecast.fits ? forecast.iteration_s : 1e6 + forecast.iteration_s);
      if (!forecast.fits) ++(trial.finished ? refused : foreseen);
    }
    const Ranking amp = ranking(trials, theirs), braid = ranking(trials, ours);
    const Ranking careful = ranking(trials, with_memory);
    RecordProperty(name + "_amp", summary(amp));
    RecordProperty(name + "_braid", summary(braid));
    RecordProperty(name + "_braid_with_memory", summary(careful));
    RecordProperty(name + "_failures_foreseen", foreseen);
    EXPECT_GT(braid.correlation, amp.correlation) << name;
    EXPECT_GT(braid.correlation, limits.correlation) << name;
    EXPECT_LT(braid.error, limits.error) << name;
    EXPECT_LT(careful.regret[1], limits.top_three_regret) << name;
    EXPECT_LT(careful.regret[2], limits.top_five_regret) << name;
    EXPECT_GE(foreseen, limits.foreseen) << name;
    EXPECT_LE(refused, limits.refused) << name;
  }
}

}  // namespace
}  // namespace braid
