#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/planners/amp_cost.h"

#include "planners/amp_experiments.h"
#include "planners/reference_files.h"

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

}  // namespace
}  // namespace braid
