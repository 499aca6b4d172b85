#include "braid/planners/graphpipe/graphpipe_planner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/plan/stage_rounds.h"
#include "braid/planners/graphpipe/greedy.h"
#include "braid/planners/graphpipe/iteration.h"
#include "braid/planners/graphpipe/job.h"
#include "braid/planners/graphpipe/warm_ups.h"
#include "braid/planners/registry.h"
#include "braid/schedule/path_bound.h"
#include "braid/schedule/plan_pipeline.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

#include "plan/heterogeneous_plan.h"
#include "planners/tiny_branches.h"
#include "planners/tiny_job.h"
#include "planners/two_kinds.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

Job tiny_job(const Graph& graph) {
  Job job;
  job.graph = &graph;
  job.model_source = "tiny";
  job.global_batch = 8;
  return job;
}

TEST(GraphPipePlanner, PlansFitTheDevicesAndMemoryAndCoverTheLayers) {
  std::mt19937_64 random(51);
  int planned = 0;
  for (int i = 0; i < 24; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 1, 6));
    const double memory = 1e6 * test::pick(random, 1, 60);
    const System system = test::tiny_system(random, test::pick(random, 1, 6), memory);
    const Outcome outcome = plan_graphpipe(tiny_job(graph), system, {}, {}, {});
    if (outcome.candidates.empty()) {
      ASSERT_TRUE(outcome.infeasibility);
      continue;
    }
    ++planned;
    const Candidate& best = outcome.candidates.front();
    std::set<std::int64_t> devices;
    std::set<std::int32_t> layers;
    std::size_t device_count = 0;
    for (const Stage& stage : best.plan.stages) {
      devices.insert(stage.devices.begin(), stage.devices.end());
      device_count += stage.devices.size();
      EXPECT_EQ(stage.devices.size(), static_cast<std::size_t>(stage.dp * stage.tp));
      layers.insert(stage.chunks[0].layers.begin(), stage.chunks[0].layers.end());
      EXPECT_EQ(8 % (stage.dp * stage.own->micro_batch), 0);
    }
    EXPECT_EQ(devices.size(), device_count);
    EXPECT_LE(*devices.rbegin(), system.device_count - 1);
    EXPECT_EQ(layers.size(), graph.layers.size());
    EXPECT_LE(best.metrics.peak_memory_bytes, memory);
    EXPECT_EQ(best.metrics.iteration_time_s, measure(best.plan).iteration_time_s);
    EXPECT_GE(best.metrics.iteration_time_s, outcome.physical_bound.time_s * (1 - 1e-9));
  }
  EXPECT_GT(planned, 10);
}

TEST(GraphPipePlanner, ASearchThatItsBudgetEndedProvesNothing) {
  std::mt19937_64 random(52);
  int slower = 0, none = 0;
  for (int i = 0; i < 40; ++i) {
    Graph graph = test::tiny_graph(random, test::pick(random, 2, 6));
    if (i % 2 == 0) test::add_branches(random, graph);
    const System system =
        test::tiny_system(random, test::pick(random, 2, 6), 1e6 * test::pick(random, 1, 20));
    const Outcome all = plan_graphpipe(tiny_job(graph), system, {}, {}, {});
    const Outcome one = plan_graphpipe(tiny_job(graph), system, {}, {.work = 1}, {});
    EXPECT_NE(all.status, Status::budget_exhausted);
    if (one.candidates.empty()) {
      EXPECT_TRUE(one.status == Status::budget_exhausted || all.candidates.empty()) << i;
      EXPECT_EQ(one.infeasibility.has_value(), one.status == Status::infeasible);
      ++none;
      continue;
    }
    EXPECT_EQ(one.status, Status::feasible);
    EXPECT_LE(all.objective, one.objective);
    EXPECT_EQ(one.search_bound_s, all.search_bound_s);
    slower += all.objective < one.objective ? 1 : 0;
  }
  EXPECT_GT(slower, 5);
  EXPECT_GT(none, 0);
}

TEST(GraphPipePlanner, StagesOfMixedClustersAreOnDevicesOfOneKindEach) {
  std::mt19937_64 random(59);
  int planned = 0, both = 0;
  for (int i = 0; i < 24; ++i) {
    Graph graph = test::tiny_graph(random, test::pick(random, 2, 6));
    if (i % 2 == 0) test::add_branches(random, graph);
    const double memory = i % 3 == 0 ? 1e6 * test::pick(random, 1, 60) : 1e12;
    const System system =
        test::two_kinds(random, test::pick(random, 1, 2), test::pick(random, 1, 3), memory);
    GraphPipeSpace space;
    space.greedy_orders = i % 4 == 0;
    space.in_flight = i % 4 == 1 ? InFlight::table : InFlight::least;
    if (i % 4 == 2) space.graph_stages = GraphStages::exact;
    const Outcome outcome = plan_graphpipe(tiny_job(graph), system, space, {}, {});
    if (outcome.candidates.empty()) {
      ASSERT_TRUE(outcome.infeasibility);
      EXPECT_GT(outcome.infeasibility->needed_bytes, outcome.infeasibility->available_bytes);
      continue;
    }
    ++planned;
    const Plan& plan = outcome.candidates.front().plan;
    for (const Check& check : verify(plan).checks) {
      EXPECT_TRUE(check.holds) << i << check.name << check.detail;
    }
    std::set<std::size_t> groups;
    for (const Stage& stage : plan.stages) {
      std::set<std::size_t> of_stage;
      for (const std::int64_t device : stage.devices) {
        of_stage.insert(placement_of(system, device).group);
      }
      ASSERT_EQ(of_stage.size(), 1U);
      groups.insert(*of_stage.begin());
      // Its times are those of its devices.
      const auto layer = static_cast<std::size_t>(stage.chunks[0].layers[0]);
      const std::vector<Option>& options =
          options_of(plan.profile, static_cast<std::int32_t>(layer));
      EXPECT_EQ(static_cast<std::size_t>(
                    options[static_cast<std::size_t>(stage.chunks[0].options[0])].device_group),
                *of_stage.begin());
    }
    both += groups.size() == 2 ? 1 : 0;
    EXPECT_GE(outcome.objective, outcome.search_bound_s * (1 - 1e-9));
  }
  EXPECT_GT(planned, 15);
  EXPECT_GT(both, 5);
}

TEST(GraphPipePlanner, EqualGroupsAreOneKindOfDevices) {
  std::mt19937_64 random(60);
  for (int i = 0; i < 8; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 2, 5));
    System whole = test::two_kinds(random, 2, 2, 1e12);
    whole.groups.pop_back();
    whole.groups.front().nodes = 2;
    whole.device_count = 2 * whole.groups.front().devices_per_node;
    System parts = whole;
    parts.groups.front().nodes = 1;
    parts.groups.push_back(parts.groups.front());
    EXPECT_EQ(plan_graphpipe(tiny_job(graph), parts, {}, {}, {}).candidates.front().plan,
              plan_graphpipe(tiny_job(graph), whole, {}, {}, {}).candidates.front().plan);
  }
}

TEST(GraphPipePlanner, TheTablesCountsAreTheSchedulesOwn) {
  std::mt19937_64 random(54);
  int planned = 0;
  for (int i = 0; i < 20; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 1, 6));
    const System system = test::tiny_system(random, test::pick(random, 1, 6), 1e9);
    GraphPipeSpace table;
    table.in_flight = InFlight::table;
    for (const Candidate& best : plan_graphpipe(tiny_job(graph), system, table, {}).candidates) {
      ++planned;
      for (const Stage& stage : best.plan.stages) EXPECT_FALSE(stage.own->warm_up);
    }
  }
  EXPECT_EQ(planned, 20);
}

TEST(GraphPipePlanner, FewestCountsAreNeverSlowerThanTheTables) {
  std::mt19937_64 random(58);
  int faster = 0;
  for (int i = 0; i < 24; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 2, 6));
    const double memory = 1e6 * test::pick(random, 1, 60);
    const System system = test::tiny_system(random, test::pick(random, 2, 6), memory);
    GraphPipeSpace table;
    table.in_flight = InFlight::table;
    table.stage_options = i % 2 == 0 ? StageOptions::data : StageOptions::all;
    GraphPipeSpace fewest = table;
    fewest.in_flight = InFlight::least;
    const Outcome before = plan_graphpipe(tiny_job(graph), system, table, {});
    const Outcome after = plan_graphpipe(tiny_job(graph), system, fewest, {});
    if (before.candidates.empty()) continue;
    ASSERT_FALSE(after.candidates.empty()) << i;
    EXPECT_LE(after.objective, before.objective * (1 + 1e-12)) << i;
    faster += after.objective < before.objective * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

/// Seconds per sample of the stage whose passes take longest.
double longest_passes_s(const GraphPipeProblem& problem, const GraphPipeSolution& solution) {
  double longest_s = 0;
  for (const GraphPipeStage& stage : solution.stages) {
    const std::int64_t samples = stage.group.micro_batch / graphpipe_replicas(problem, stage);
    const auto index =
        std::find(problem.device_samples.begin(), problem.device_samples.end(), samples) -
        problem.device_samples.begin();
    double passes_s = 0;
    for (const std::int32_t node : stage.nodes) {
      const auto kind = static_cast<std::size_t>(problem.nodes[static_cast<std::size_t>(node)]);
      const GraphPipeCost& cost = problem.kinds[kind][static_cast<std::size_t>(stage.strategy)];
      passes_s += cost.forward_s[static_cast<std::size_t>(index)] +
                  cost.backward_s[static_cast<std::size_t>(index)];
    }
    longest_s = std::max(longest_s, passes_s / static_cast<double>(stage.group.micro_batch));
  }
  return longest_s;
}

/// That is what leaves plans out unseen.
TEST(GraphPipePlanner, CountsThatLoseNoTimeOnSlowLinksAreTried) {
  std::mt19937_64 random(57);
  int branched = 0;
  for (int i = 0; i < 20; ++i) {
    Graph graph = test::tiny_graph(random, test::pick(random, 2, 6));
    test::add_branches(random, graph);
    const System system = test::tiny_system(random, test::pick(random, 2, 6), 1e12);
    Job job = tiny_job(graph);
    job.global_batch = 32;
    const Outcome outcome = plan_graphpipe(job, system, {}, {}, {});
    ASSERT_FALSE(outcome.candidates.empty());
    const Plan& plan = outcome.candidates.front().plan;
    branched += plan.stages.size() > 1 ? 1 : 0;
    Plan counted = plan;
    set_warm_ups(counted, time_keeping_warm_ups(plan));
    EXPECT_LE(outcome.objective, simulate_time_s(counted) * (1 + 1e-12)) << i;
  }
  EXPECT_GT(branched, 5);
}

TEST(GraphPipePlanner, NoIterationIsShorterThanAStagesPasses) {
  std::mt19937_64 random(64);
  int planned = 0;
  double closest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 12; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 1, 6));
    const double memory = 1e6 * test::pick(random, 5, 60);
    const System system = test::tiny_system(random, test::pick(random, 1, 6), memory);
    const Job job = tiny_job(graph);
    GroupTables tables(job, system);
    const GraphPipeJob all = graphpipe_job(job, system, tables, {});
    visit_graphpipe_plans(all.problem, [&](const GraphPipeSolution& found) {
      const Plan plan = graphpipe_plan(job, system, tables, all, found);
      const double bound_s =
          longest_passes_s(all.problem, found) * static_cast<double>(all.problem.batch);
      const double ratio = measure(plan).iteration_time_s / bound_s;
      EXPECT_GE(ratio, 1 - 1e-9) << i;
      closest = std::min(closest, ratio);
      ++planned;
      return std::numeric_limits<double>::infinity();
    });
  }
  EXPECT_GT(planned, 100);
  EXPECT_LT(closest, 1.2);
}

/// A 1F1B plan of stages with micro-batches of their own but of like rounds, without ZeRO.
Plan like_rounds(std::mt19937_64& random) {
  for (;;) {
    Plan plan = test::heterogeneous_plan(random);
    plan.parallel.schedule = ScheduleKind::one_f_one_b;
    for (Stage& stage : plan.stages) {
      stage.own->zero = Zero::none;
      stage.own->offload_optimizer = false;
    }
    const std::vector<StageRounds> rounds = stage_rounds(plan);
    if (std::all_of(rounds.begin(), rounds.end(),
                    [&](const StageRounds& round) { return round == rounds.front(); })) {
      return plan;
    }
  }
}

/// Passes, handovers and what comes after them, one micro-batch more a period more.
TEST(GraphPipeWarmUps, KeepTheRateOfTheSlowestStageOrLink) {
  std::mt19937_64 random(55);
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = like_rounds(random);
    set_warm_ups(plan, rate_keeping_warm_ups(plan));
    const Pipeline pipeline = pipeline_to_time(plan).pipeline;
    double period_s = 0, fill_s = 0, tail = 0;
    std::vector<double> way_s(plan.stages.size(), 0);
    for (std::size_t s = plan.stages.size(); s-- > 0;) {
      const double passes_s = pipeline.forward_s[s] + pipeline.backward_s[s];
      period_s = std::max(period_s, passes_s);
      for (const Transfer& transfer : pipeline.transfers) {
        period_s = std::max({period_s, transfer.time_s, transfer.back_s()});
        if (transfer.source != static_cast<std::int32_t>(s)) continue;
        way_s[s] = std::max(way_s[s], transfer.time_s + transfer.back_s() +
                                          way_s[static_cast<std::size_t>(transfer.target)]);
      }
      way_s[s] += passes_s;
      fill_s = std::max(fill_s, way_s[s]);
      tail = std::max(tail, tail_s(pipeline.sync[s], pipeline.backward_s[s]));
    }
    const auto m = static_cast<double>(pipeline.num_micro_batches);
    EXPECT_LE(simulate_time_s(plan), ((m - 1) * period_s + fill_s + tail) * (1 + 1e-9)) << trial;
  }
}

TEST(GraphPipeWarmUps, TakeWhatMemoryHasRoomForAndNeverWaitForEver) {
  std::mt19937_64 random(56);
  int held_back = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = like_rounds(random);
    const WarmUps ample = rate_keeping_warm_ups(plan);
    set_warm_ups(plan, WarmUps(plan.stages.size(), 1));
    double least = 0;
    for (const MemoryBreakdown& memory : memory_of_stages(plan)) {
      least = std::max(least, memory.device_total());
    }
    Chip& chip = plan.system.groups.front().chip;
    chip.memory.bytes = chip.reserved_bytes + least * test::pick(random, 100, 300) / 100;
    const WarmUps tight = rate_keeping_warm_ups(plan);
    set_warm_ups(plan, tight);
    EXPECT_NO_THROW(simulate(plan)) << trial;
    EXPECT_LE(measure(plan).peak_memory_bytes, usable_bytes(chip) * (1 + 1e-12)) << trial;
    for (std::size_t s = 0; s < tight.size(); ++s) EXPECT_LE(tight[s], ample[s]);
    held_back += tight != ample ? 1 : 0;
  }
  EXPECT_GT(held_back, 10);
}

TEST(GraphPipeWarmUps, FewestLoseNoTime) {
  std::mt19937_64 random(57);
  int fewer = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = like_rounds(random);
    const double before_s = simulate_time_s(plan);
    const WarmUps before = forwards_first(plan);
    const WarmUps fewest = fewest_warm_ups(plan);
    set_warm_ups(plan, fewest);
    EXPECT_LE(simulate_time_s(plan), before_s * (1 + 1e-11)) << trial;
    for (std::size_t s = 0; s < fewest.size(); ++s) EXPECT_LE(fewest[s], before[s]);
    fewer += fewest != before ? 1 : 0;
  }
  EXPECT_GT(fewer, 10);
}

/// Every order of a stage's passes, as runs.
void each_order(std::int64_t m, std::int64_t forwards, std::int64_t backwards,
                std::vector<PassRun>& runs, const std::function<void()>& visit) {
  if (backwards == m) return visit();
  for (std::int64_t f = 1; forwards + f <= m; ++f) {
    for (std::int64_t b = 1; backwards + b <= forwards + f; ++b) {
      if (forwards + f == m && backwards + b < m) continue;
      runs.push_back({f, b, 1});
      each_order(m, forwards + f, backwards + b, runs, visit);
      runs.pop_back();
    }
  }
}

/// All orders of all stages.
TEST(GraphPipeGreedy, NoOrderBeatsTheBound) {
  std::mt19937_64 random(59);
  int tried = 0;
  for (int trial = 0; trial < 2000 && tried < 12; ++trial) {
    Plan plan = like_rounds(random);
    const std::int64_t m = form_of(plan, 0).num_micro_batches;
    if (m > 4 || plan.stages.size() < 2 || plan.stages.size() > 3) continue;
    ++tried;
    PathBoundWorkspace workspace;
    const double bound_s = pipeline_path_bound_s(pipeline_to_time(plan).pipeline, workspace);
    std::int64_t work = 1 << 20;
    const std::optional<Plan> greedy = greedy_plan(plan, work);
    ASSERT_TRUE(greedy);
    EXPECT_GE(simulate_time_s(*greedy), bound_s * (1 - 1e-12));
    double best_s = simulate_time_s(*greedy);
    const std::function<void(std::size_t)> all = [&](std::size_t s) {
      if (s == plan.stages.size()) {
        try {
          best_s = std::min(best_s, simulate_time_s(plan));
        } catch (const Error&) {
          return;  // Waits for ever.
        }
        return;
      }
      std::vector<PassRun> runs;
      each_order(m, 0, 0, runs, [&] {
        plan.stages[s].own->passes = runs;
        all(s + 1);
      });
    };
    all(0);
    EXPECT_GE(best_s, bound_s * (1 - 1e-12)) << trial;
  }
  EXPECT_EQ(tried, 12);
}

TEST(GraphPipeGreedy, TakesWhatMemoryHasRoomForAndNeverWaitsForEver) {
  std::mt19937_64 random(60);
  int held_back = 0, listed = 0;
  for (int trial = 0; trial < 150; ++trial) {
    Plan plan = like_rounds(random);
    std::int64_t work = 1 << 24;
    const std::optional<Plan> ample = greedy_plan(plan, work);
    ASSERT_TRUE(ample);
    set_warm_ups(plan, WarmUps(plan.stages.size(), 1));
    double least = 0;
    for (const MemoryBreakdown& memory : memory_of_stages(plan)) {
      least = std::max(least, memory.device_total());
    }
    Chip& chip = plan.system.groups.front().chip;
    chip.memory.bytes = chip.reserved_bytes + least * test::pick(random, 100, 200) / 100;
    const std::optional<Plan> tight = greedy_plan(plan, work);
    ASSERT_TRUE(tight);
    EXPECT_NO_THROW(simulate(*tight)) << trial;
    EXPECT_LE(measure(*tight).peak_memory_bytes, usable_bytes(chip) * (1 + 1e-12)) << trial;
    const std::vector<std::int64_t> held = micro_batches_held(*tight);
    held_back += held != micro_batches_held(*ample) ? 1 : 0;
    for (const Stage& stage : ample->stages) listed += stage.own->passes.size() > 3 ? 1 : 0;
  }
  EXPECT_GT(held_back, 5);
  EXPECT_GT(listed, 0);
}

/// Never slower than the default, nor in more memory at the same time; the plan says which it is.
TEST(GraphPipeGreedy, PlansAreNeverWorseThanTheDefault) {
  std::mt19937_64 random(61);
  int greedy_plans = 0;
  for (int i = 0; i < 16; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 2, 6));
    const double memory = 1e6 * test::pick(random, 5, 60);
    const System system = test::tiny_system(random, test::pick(random, 2, 6), memory);
    GraphPipeSpace options;
    options.in_flight = i % 3 == 0 ? InFlight::table : InFlight::least;
    const Outcome before = plan_graphpipe(tiny_job(graph), system, options, {});
    options.greedy_orders = true;
    const Outcome after = plan_graphpipe(tiny_job(graph), system, options, {});
    if (before.candidates.empty()) continue;
    ASSERT_FALSE(after.candidates.empty()) << i;
    EXPECT_THAT(after.assumptions.back(), HasSubstr("order of passes: "));
    const Metrics& old = before.candidates.front().metrics;
    const Metrics& now = after.candidates.front().metrics;
    EXPECT_EQ(after.objective, now.iteration_time_s);
    EXPECT_LE(now.peak_memory_bytes, memory);
    EXPECT_LE(now.iteration_time_s, old.iteration_time_s * (1 + 1e-9)) << i;
    if (now.iteration_time_s >= old.iteration_time_s * (1 - 1e-9)) {
      EXPECT_LE(now.peak_memory_bytes, old.peak_memory_bytes * (1 + 1e-9)) << i;
    }
    const bool greedy = !after.candidates.front().plan.stages.front().own->passes.empty();
    EXPECT_EQ(greedy, after.assumptions.back().find("passes: greedy") != std::string::npos);
    greedy_plans += greedy ? 1 : 0;
  }
  EXPECT_GT(greedy_plans, 0);
}

/// Whether its stages' own option says recomputation and tensor parallelism as asked.
void expect_strategies(const Plan& plan, int tp, Recompute recompute) {
  for (const Stage& stage : plan.stages) {
    EXPECT_EQ(stage.tp, tp);
    for (std::size_t i = 0; i < stage.chunks[0].layers.size(); ++i) {
      const Option& option = options_of(plan.profile, stage.chunks[0].layers[i])
                                 .at(static_cast<std::size_t>(stage.chunks[0].options[i]));
      EXPECT_EQ(option.how.tp, tp);
      EXPECT_EQ(option.how.recompute, recompute);
      EXPECT_EQ(option.how.sequence_parallel, stage.own->sequence_parallel);
    }
  }
}

TEST(GraphPipePlanner, StagesOfUnlikeDegreesVerifyAndAreNeverSlowerThanDataParallelOnes) {
  std::mt19937_64 random(59);
  int faster = 0, different = 0;
  for (int i = 0; i < 20; ++i) {
    Graph graph = test::tiny_graph(random, test::pick(random, 2, 5));
    if (i % 2 == 0) test::add_branches(random, graph);
    const double memory = 1e6 * test::pick(random, 1, 30);
    const System system = test::tiny_system(random, test::pick(random, 2, 6), memory);
    GraphPipeSpace data;
    data.stage_options = StageOptions::data;
    const Outcome before = plan_graphpipe(tiny_job(graph), system, data, {});
    const Outcome after = plan_graphpipe(tiny_job(graph), system, {}, {});
    for (const Candidate& best : before.candidates)
      expect_strategies(best.plan, 1, Recompute::none);
    if (after.candidates.empty()) {
      EXPECT_TRUE(before.candidates.empty());
      continue;
    }
    const Plan& plan = after.candidates.front().plan;
    for (const Check& check : verify(plan).checks) {
      EXPECT_TRUE(check.holds) << i << ": " << check.name << ": " << check.detail;
    }
    std::set<int> degrees;
    for (const Stage& stage : plan.stages) degrees.insert(stage.tp);
    different += degrees.size() > 1 ? 1 : 0;
    if (!before.candidates.empty()) {
      EXPECT_LE(after.objective, before.objective * (1 + 1e-12)) << i;
    }
    faster += before.candidates.empty() || after.objective < before.objective ? 1 : 0;
  }
  EXPECT_GT(faster, 3);
  EXPECT_GT(different, 0);
}

TEST(GraphPipePlanner, WaysToRunAreThoseAskedFor) {
  std::mt19937_64 random(60);
  const Graph graph = test::tiny_graph(random, 3);
  System system = test::tiny_system(random, 4, 1e9);
  system.groups.front().devices_per_node = 4;
  GraphPipeSpace asked;
  asked.tp = 2;
  asked.recompute = Recompute::full;
  const Outcome outcome = plan_graphpipe(tiny_job(graph), system, asked, {});
  expect_strategies(outcome.candidates.at(0).plan, 2, Recompute::full);
}

TEST(GraphPipePlanner, StagesOfAnyShapeOnlyAddPlans) {
  std::mt19937_64 random(53);
  int planned = 0;
  for (int i = 0; i < 20; ++i) {
    const Graph graph = test::tiny_graph(random, test::pick(random, 1, 6));
    const double memory = 1e6 * test::pick(random, 5, 60);
    const System system = test::tiny_system(random, test::pick(random, 1, 6), memory);
    GraphPipeSpace any;
    any.graph_stages = GraphStages::exact;
    const Outcome plain = plan_graphpipe(tiny_job(graph), system, {}, {}, {});
    const Outcome exact = plan_graphpipe(tiny_job(graph), system, any, {}, {});
    EXPECT_THAT(exact.assumptions.back(), HasSubstr("with series-parallel stages: "));
    if (plain.candidates.empty()) continue;
    ++planned;
    ASSERT_FALSE(exact.candidates.empty());
    EXPECT_LE(exact.objective, plain.objective);
    EXPECT_GT(exact.evaluated, plain.evaluated);
  }
  EXPECT_GT(planned, 10);
}

TEST(GraphPipePlanner, SaysWhatItCannotDo) {
  std::mt19937_64 random(52);
  const Graph graph = test::tiny_graph(random, 3);
  const System system = test::tiny_system(random, 4, 1e9);
  const auto refusal = [&](const GraphPipeSpace& space) {
    try {
      plan_graphpipe(tiny_job(graph), system, space, {}, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  GraphPipeSpace context;
  context.cp = 2;
  EXPECT_THAT(refusal(context), HasSubstr("--cp: the graphpipe planner cannot do that"));
  GraphPipeSpace samples;
  samples.micro_batch = 3;
  EXPECT_THAT(refusal(samples),
              HasSubstr("3 samples are no power of two that divides the batch of 8"));
  GraphPipeSpace thirds;
  thirds.tp = 3;
  EXPECT_THAT(refusal(thirds), HasSubstr("no stage can run as asked"));
  samples.micro_batch = 2;
  const Outcome pairs = plan_graphpipe(tiny_job(graph), system, samples, {}, {});
  for (const Stage& stage : pairs.candidates.at(0).plan.stages) {
    EXPECT_EQ(stage.own->micro_batch, 2);
  }
}

}  // namespace
}  // namespace braid
