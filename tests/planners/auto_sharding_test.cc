#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_json.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/registry.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// Options that the plan's layers run with and that say how they are sharded.
int sharded_layers(const Plan& plan) {
  int sharded = 0;
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const auto option = static_cast<std::size_t>(chunk.options[i]);
        sharded += options_of(plan.profile, chunk.layers[i])[option].sharded.empty() ? 0 : 1;
      }
    }
  }
  return sharded;
}

/// The plan's file says all that it rests on: read back, it holds and takes as long.
void expect_plan_stands_alone(const Candidate& candidate) {
  const std::string text = to_text(to_json(candidate.plan));
  const Plan read =
      plan_from_json(Document::parse(text, Document::Syntax::json, "plan.json").root());
  EXPECT_EQ(to_text(to_json(read)), text);
  EXPECT_EQ(sharded_layers(read), sharded_layers(candidate.plan));
  for (const Check& check : verify(read).checks) {
    EXPECT_TRUE(check.holds) << check.name << ": " << check.detail;
  }
  EXPECT_DOUBLE_EQ(simulate_time_s(read), candidate.metrics.iteration_time_s);
}

// What each planner makes least is no more when it may also choose what was found.
TEST(AutoSharding, NeverMakeAPlanWorse) {
  std::mt19937_64 random(137);
  for (const char* name : {"braid", "piper", "phaze", "amp", "graphpipe"}) {
    const PlannerEntry& planner = find_planner(name);
    int better = 0, planned = 0, only = 0;
    for (int trial = 0; trial < 20; ++trial) {
      Graph graph = test::tiny_graph(random, pick(random, 1, 5));
      if (trial % 3 == 0) test::leave_unsharded(graph);
      if (trial % 4 == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
      if (trial % 5 == 0) test::add_branches(random, graph);
      const double memory_bytes = pick(random, 0, 2) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
      const System system = test::tiny_system(random, 1 << pick(random, 1, 3), memory_bytes);
      Job job;
      job.graph = &graph;
      job.global_batch = 1 << pick(random, 0, 3);
      const auto plan = [&](ShardingSource sharding) {
        job.sharding = sharding;
        return planner.plan(job, system, {}, {}, {});
      };
      const Outcome written = plan(ShardingSource::manual);
      const Outcome found = plan(ShardingSource::automatic);
      if (found.candidates.empty()) {
        ASSERT_TRUE(written.candidates.empty()) << name << " " << trial;
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(expect_plan_stands_alone(found.candidates[0]));
      ASSERT_LE(found.physical_bound.time_s, found.candidates[0].metrics.iteration_time_s);
      only += written.candidates.empty() ? 1 : 0;
      if (written.candidates.empty()) continue;
      ++planned;
      ASSERT_LE(found.objective, written.objective * (1 + 1e-9)) << name << " " << trial;
      if (found.objective > 0.999 * written.objective) continue;
      ++better;
      // Written forms of these two are of sequence parallelism alone, where there is a sequence.
      const bool other_forms = planner.name == "piper" || planner.name == "graphpipe";
      EXPECT_TRUE(other_forms || sharded_layers(found.candidates[0].plan) > 0) << name;
    }
    EXPECT_GT(planned, 8) << name;
    EXPECT_GT(better + only, 1) << name;
  }
}

TEST(AutoSharding, LoseNothingToTheExhaustivePlanner) {
  std::mt19937_64 random(41);
  int feasible = 0, sharded = 0;
  for (int trial = 0; trial < 40; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 1, 6));
    if (pick(random, 0, 1) == 0) test::leave_unsharded(graph);
    const double memory_bytes = pick(random, 0, 2) == 0 ? 1e12 : 1e5 * pick(random, 5, 60);
    const System system = test::tiny_system(random, 1 << pick(random, 1, 3), memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    job.sharding = ShardingSource::automatic;
    SpaceOptions space;
    space.all_devices = true;
    const Outcome found = plan_braid(job, system, space, {}, {});
    const Outcome all = plan_exhaustively(job, system, space, {}, {});
    ASSERT_EQ(found.candidates.empty(), all.candidates.empty()) << "trial " << trial;
    if (found.candidates.empty()) continue;
    ++feasible;
    ASSERT_NEAR(found.objective, all.objective, 1e-9 * all.objective) << "trial " << trial;
    ASSERT_LE(found.search_bound_s, all.objective * (1 + 1e-9));
    sharded += sharded_layers(found.candidates[0].plan) > 0 ? 1 : 0;
  }
  EXPECT_GT(feasible, 20);
  EXPECT_GT(sharded, 3);
}

// 25 heads divide by 5 at most, and the written shardings want that of every layer.
TEST(AutoSharding, PlanGpt2XlWithDegreesThatDoNotDivideItsHeads) {
  const Graph graph = load_model("gpt2-xl", {.seq_len = 1024, .dims = {}});
  Job job;
  job.graph = &graph;
  job.global_batch = 64;
  const System system = load_system("dgx-a100:64");
  SpaceOptions space;
  space.tp = 4;
  EXPECT_THROW(plan_braid(job, system, space, {}, {}), Error);
  job.sharding = ShardingSource::automatic;
  for (const int tp : {2, 4, 8}) {
    space.tp = tp;
    space.micro_batch = 2;
    const Outcome outcome = plan_braid(job, system, space, {}, {});
    ASSERT_FALSE(outcome.candidates.empty());
    EXPECT_EQ(outcome.candidates[0].plan.parallel.tp, tp);
    EXPECT_FALSE(outcome.candidates[0].plan.parallel.sequence_parallel);
    EXPECT_EQ(sharded_layers(outcome.candidates[0].plan), static_cast<int>(graph.layers.size()));
    expect_plan_stands_alone(outcome.candidates[0]);
  }
}

TEST(AutoSharding, DegreesAreThoseThatDivideEveryLayerSomehow) {
  const auto degrees = [](const char* model) { return auto_degrees(load_model(model, {}), 8); };
  EXPECT_EQ(degrees("gpt2-xl"), (std::vector<int>{2, 3, 4, 5, 6, 8}));
  EXPECT_THAT(degrees("resnet-50"), ::testing::Contains(8));
  // Experts are sharded as the model says: by their 14336 inner features.
  EXPECT_EQ(degrees("mixtral-8x7b"), (std::vector<int>{2, 4, 7, 8}));
  Graph nothing = load_model("gpt2-xl", {});
  for (Operator& op : nothing.operators) op.kind = Softmax{};
  EXPECT_TRUE(auto_degrees(nothing, 8).empty());
}

// Shardings that differ in nothing are tried once.
TEST(AutoSharding, DistinctOnesDifferInSomeLayer) {
  const Graph graph = load_model("gpt2-xl", {.seq_len = 1024, .dims = {}});
  Job job;
  job.graph = &graph;
  job.sharding = ShardingSource::automatic;
  const System system = load_system("dgx-h100:8");
  LayerTables tables(job, system);
  for (const int tp : {2, 5, 8}) {
    Configuration form;
    form.tp = tp;
    std::vector<std::vector<std::vector<ShardedOperator>>> seen;
    for (const ShardingKind sharding :
         {ShardingKind::manual, ShardingKind::fastest, ShardingKind::smallest}) {
      form.sharding = sharding;
      if (sharding == ShardingKind::manual && tp != 5) continue;
      std::vector<std::vector<ShardedOperator>> all;
      for (std::size_t kind = 0; kind < tables.at(form).kinds.size(); ++kind) {
        all.push_back(tables.option(form, kind).sharded);
      }
      EXPECT_EQ(tables.is_distinct(form), std::find(seen.begin(), seen.end(), all) == seen.end());
      seen.push_back(all);
    }
  }
}

TEST(AutoSharding, OfUnlikeDevicesAreForPlannerBraid) {
  std::mt19937_64 random(5);
  const Graph graph = test::tiny_graph(random, 4);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  job.sharding = ShardingSource::automatic;
  const System system = load_system("dgx-h100:1nodes+dgx-a100:1nodes");
  const Outcome planned = find_planner("braid").plan(job, system, {}, {}, {});
  ASSERT_FALSE(planned.candidates.empty());
  expect_plan_stands_alone(planned.candidates.front());
  for (const char* planner : {"piper", "phaze", "amp", "graphpipe", "megatron"}) {
    try {
      find_planner(planner).plan(job, system, {}, {}, {});
      FAIL() << planner;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("--sharding")) << planner;
    }
  }
}

}  // namespace
}  // namespace braid
