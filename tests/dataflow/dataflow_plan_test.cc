#include "braid/dataflow/dataflow_plan.h"

#include <gtest/gtest.h>

#include "dataflow/reference_setup.h"
#include "dataflow/small_setup.h"

namespace braid {
namespace {

DataflowSetup small(const std::string& network) {
  return parse_dataflow_setup(replaced(replaced(small_setup_text(), "num_chip: 4", "num_chip: 8"),
                                       "r { x: 4 link_bw_x: 50.0 par_x: \"TP\" }", network),
                              "setup.txt");
}

TEST(DataflowPlan, SearchIsTheLeastOverAllNetworks) {
  DataflowSetup setup = small("r_fc { x: 4 y: 2 link_bw_x: 50 link_bw_y: 20 }");
  for (const bool published : {true, false}) {
    const DataflowPlanRules rules =
        published ? published_plan_rules(setup) : default_plan_rules(setup);
    double best = 1e300;
    for (const auto& [x, y] : {std::pair{1, 8}, {2, 4}, {4, 2}, {8, 1}}) {
      for (const FabricRole first : {FabricRole::tensor, FabricRole::pipeline, FabricRole::data}) {
        for (const FabricRole second :
             {FabricRole::tensor, FabricRole::pipeline, FabricRole::data}) {
          DataflowSetup given = setup;
          given.fabric.dimensions[0].size = x;
          given.fabric.dimensions[1].size = y;
          given.fabric.dimensions[0].role = first;
          given.fabric.dimensions[1].role = second;
          if (given.job.layers % degree_of(given.fabric, FabricRole::pipeline) != 0) continue;
          const DataflowPlan plan = plan_dataflow(given, rules);
          if (!plan.outcome.mapping.partition_of.empty()) best = std::min(best, plan.time.time_s);
        }
      }
    }
    const DataflowSearch search = search_fabrics(setup, rules, FabricSearch::shapes);
    EXPECT_DOUBLE_EQ(search.best.time.time_s, best);
    EXPECT_GE(search_fabrics(setup, rules, FabricSearch::roles).best.time.time_s, best);
  }
}

// What the default charges on top: each alone makes no plan faster, tensors being counted alike.
TEST(DataflowPlan, ChargingMoreIsNeverFaster) {
  const DataflowSetup setup = small(
      "r_r { x: 4 y: 2 link_bw_x: 50 link_bw_y: 50 par_x: 'TP' "
      "par_y: 'PP' }");
  const DataflowPlanRules published = published_plan_rules(setup);
  const double time_s = plan_dataflow(setup, published).time.time_s;
  DataflowPlanRules rules = published;
  rules.mapping.weight_traffic = true;
  EXPECT_GE(plan_dataflow(setup, rules).time.time_s, time_s);
  rules = published;
  rules.mapping.whole_tiles = true;
  EXPECT_GE(plan_dataflow(setup, rules).time.time_s, time_s);
  rules = published;
  rules.job.plain_pipeline = true;
  EXPECT_GT(plan_dataflow(setup, rules).time.time_s, time_s);
  rules = published;
  rules.job.training_state = true;
  EXPECT_GE(plan_dataflow(setup, rules).time.time_s, time_s);
}

TEST(DataflowPlan, TrainingStateTakesRoom) {
  DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  setup.graph.kernels[2].backward = setup.graph.kernels[3].backward = true;
  const JobRules published = published_job_rules(setup);
  JobRules trained = published;
  trained.training_state = true;
  const Sharding dims = choose_sharding(setup, published);
  const double parameters = 4096.0 * 1024 / 4;
  // Published: both kernels' parameters in 12 layers. Trained: the forward one's with gradients,
  // fp32 copy and two moments, and what the forward pass leaves for the backward one.
  EXPECT_DOUBLE_EQ(chip_work(setup, dims, published).resident_bytes, 2 * parameters * 2 * 12);
  const double stash = 4096.0 / 4 * 512 * 2;
  EXPECT_DOUBLE_EQ(chip_work(setup, dims, trained).resident_bytes,
                   parameters * 12 * 16 + stash * 11);
}

// DFModel, section VII: the search finds the 4 x 2 torus over all products of eight.
TEST(DataflowPlan, SambaNovaOverAllShapes) {
  auto setup = reference_setup("gpt3_175b_sn10");
  if (!setup) GTEST_SKIP() << "reference data not present";
  setup->fabric.dimensions = {{FabricShape::ring, 8, 50e9, FabricRole::none},
                              {FabricShape::ring, 1, 50e9, FabricRole::none}};
  const DataflowSearch search =
      search_fabrics(*setup, published_plan_rules(*setup), FabricSearch::shapes);
  EXPECT_NEAR(search.best.time.time_s, 762.947, 0.001);
  EXPECT_EQ(search.best.time.tensor, 4);
  EXPECT_EQ(search.best.time.data, 2);
  EXPECT_EQ(search.best.outcome.status, MappingStatus::optimal);
}

}  // namespace
}  // namespace braid
