#include "braid/evaluate/change_chain.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/direct_stages.h"
#include "braid/planners/registry.h"

namespace braid {
namespace {

struct Case {
  Graph graph;
  System system;
  Job job;
  TrainerLimits can;

  Case(const char* model, const char* cluster, std::int64_t batch, std::int64_t seq_len)
      : graph(load_model(model, {.seq_len = seq_len, .dims = {}})), system(load_system(cluster)) {
    set_working_precision(graph, job.precision.activation, job.precision.weight);
    job.graph = &graph;
    job.global_batch = batch;
  }
  ChangeRules rules() const { return {job, system, can}; }
};

double time_of(const Case& c, const StatedConfiguration& stated) {
  return stated_plan(c.job, c.system, c.can, stated).candidate.metrics.iteration_time_s;
}

TEST(ChangeChain, EndsAtTheBestPlanBitForBit) {
  const Case c("llama-3-8b", "dgx-h100:16", 128, 4096);
  const Outcome outcome = find_planner("braid").plan(c.job, c.system, SpaceOptions{}, {}, {});
  ASSERT_FALSE(outcome.candidates.empty());
  const Candidate& best = outcome.candidates.front();
  StatedConfiguration from;
  from.parallel.tp = 8;
  from.parallel.pp = 2;
  from.parallel.dp = 1;
  from.parallel.micro_batch = 1;
  from.parallel.recompute = Recompute::full;
  from.parallel = stated_plan(c.job, c.system, c.can, from).candidate.plan.parallel;
  const auto changes = change_chain(from, {best.plan.parallel, layer_counts(best.plan)}, c.rules());
  ASSERT_GE(changes.size(), 2U);
  EXPECT_EQ(changes.back().time_s, best.metrics.iteration_time_s);
  EXPECT_EQ(changes.back().peak_memory_bytes, best.metrics.peak_memory_bytes);
  EXPECT_TRUE(changes.back().fits);
  for (const ConfigurationChange& change : changes) EXPECT_FALSE(change.what.empty());
}

TEST(StatedPlan, TakesEveryOrderOfTheAxes) {
  const Case c("llama-3-8b", "dgx-h100:16", 64, 2048);
  StatedConfiguration stated;
  Parallelism& p = stated.parallel;
  p.tp = p.cp = p.pp = p.dp = 2;
  p.order = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};
  std::sort(p.order.begin(), p.order.end());
  int orders = 0;
  do {
    const StatedPlan plan = stated_plan(c.job, c.system, c.can, stated);
    EXPECT_GT(plan.candidate.metrics.iteration_time_s, 0);
    ++orders;
  } while (std::next_permutation(p.order.begin(), p.order.end()));
  EXPECT_EQ(orders, 24);
}

TEST(ChangeChain, DoesNotRiseWhereAnotherOrderFalls) {
  const Case c("qwen3-30b-a3b", "dgx-h100:64", 1024, 40960);
  StatedConfiguration from, to;
  from.parallel.tp = 8;
  from.parallel.ep = 8;
  from.parallel.sequence_parallel = true;
  to.parallel.cp = 8;
  to.parallel.ep = 8;
  for (StatedConfiguration* each : {&from, &to}) {
    each->parallel.dp = 0;
    each->parallel.zero = Zero::optimizer;
    each->parallel = stated_plan(c.job, c.system, c.can, *each).candidate.plan.parallel;
  }
  const double first_s = time_of(c, from);
  double before_s = first_s, rises_s = 0;
  for (const ConfigurationChange& change : change_chain(from, to, c.rules())) {
    rises_s += std::max(0.0, change.time_s - before_s);
    before_s = change.time_s;
  }
  EXPECT_LT(rises_s, 0.02 * first_s);  // By way of cp first they are 0.6.
}

TEST(ChangeChain, OfNoDifferenceIsEmpty) {
  const Case c("gpt2", "dgx-h100:8", 64, 1024);
  StatedConfiguration stated;
  stated.parallel.dp = 0;
  stated.parallel = stated_plan(c.job, c.system, c.can, stated).candidate.plan.parallel;
  EXPECT_TRUE(change_chain(stated, stated, c.rules()).empty());
}

/// A random configuration of the job that can be stated.
std::optional<StatedConfiguration> random_configuration(const Case& c, std::mt19937& engine) {
  const auto pick = [&](std::initializer_list<int> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(engine() % values.size()));
  };
  StatedConfiguration stated;
  Parallelism& p = stated.parallel;
  p.tp = pick({1, 2, 4});
  p.pp = pick({1, 2, 4});
  p.cp = pick({1, 1, 2});
  p.dp = pick({0, 1, 2});
  p.vp = p.pp > 1 ? pick({1, 2}) : 1;
  p.micro_batch = pick({1, 2, 4});
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  p.recompute = static_cast<Recompute>(pick({0, 1, 2}));
  p.zero = static_cast<Zero>(pick({0, 1, 2}));
  p.sequence_parallel = p.tp > 1 && pick({0, 1}) == 1;
  p.offload_optimizer = pick({0, 0, 1}) == 1;
  try {
    stated.parallel = stated_plan(c.job, c.system, c.can, stated).candidate.plan.parallel;
    return stated;
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(ChangeChain, LeadsFromAnyConfigurationToAnyOther) {
  const Case c("gpt2", "dgx-h100:8", 32, 256);
  std::mt19937 engine(7);
  int chains = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto from = random_configuration(c, engine);
    const auto to = random_configuration(c, engine);
    if (!from || !to || from->parallel == to->parallel) continue;
    ++chains;
    const auto changes = change_chain(*from, *to, c.rules());
    ASSERT_FALSE(changes.empty());
    EXPECT_EQ(changes.back().after.parallel, to->parallel);
    const StatedPlan end = stated_plan(c.job, c.system, c.can, *to);
    EXPECT_EQ(changes.back().time_s, end.candidate.metrics.iteration_time_s);
    EXPECT_EQ(changes.back().peak_memory_bytes, end.candidate.metrics.peak_memory_bytes);
  }
  EXPECT_GT(chains, 20);
}

/// Of pipelines of gpt2, 14 layers.
StatedConfiguration pipeline(const Case& c, int pp, int vp, std::vector<std::int32_t> layers) {
  StatedConfiguration stated;
  stated.parallel.pp = pp;
  stated.parallel.vp = vp;
  stated.parallel.dp = 0;
  stated.parallel.schedule = vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  stated.layers = std::move(layers);
  stated.parallel = stated_plan(c.job, c.system, c.can, stated).candidate.plan.parallel;
  return stated;
}

std::vector<std::string> words_of(const std::vector<ConfigurationChange>& changes) {
  std::vector<std::string> words;
  for (const ConfigurationChange& change : changes) words.push_back(change.what);
  return words;
}

TEST(ChangeChain, AStatedLayoutIsGivenUpBeforeTheNumberOfChunksChanges) {
  const Case c("gpt2", "dgx-h100:8", 32, 256);
  const StatedConfiguration from = pipeline(c, 2, 2, {2, 2, 2, 8});
  const StatedConfiguration to = pipeline(c, 2, 3, {});
  const auto changes = change_chain(from, to, c.rules());
  ASSERT_EQ(words_of(changes),
            (std::vector<std::string>{"layout 2x3,8 -> as the trainer deals",
                                      "schedule interleaved vp 2 -> interleaved vp 3"}));
  EXPECT_EQ(changes[0].time_s, time_of(c, {from.parallel, {}}));
  EXPECT_LT(changes[0].time_s, 0.9 * time_of(c, from));
  EXPECT_EQ(changes[1].time_s, time_of(c, to));
}

TEST(ChangeChain, FromOneStatedLayoutToAnotherOfOtherChunks) {
  const Case c("gpt2", "dgx-h100:8", 32, 256);
  const StatedConfiguration from = pipeline(c, 2, 1, {2, 12});
  const StatedConfiguration to = pipeline(c, 2, 2, {4, 3, 4, 3});
  const auto changes = change_chain(from, to, c.rules());
  EXPECT_EQ(words_of(changes), (std::vector<std::string>{"layout 2,12 -> as the trainer deals",
                                                         "schedule 1f1b -> interleaved vp 2",
                                                         "layout 4,3x2,4 -> 4,3,4,3"}));
  EXPECT_EQ(changes.back().time_s, time_of(c, to));
}

TEST(ChangeChain, AsManyChunksOtherwiseDividedKeepTheirLayoutTogether) {
  const Case c("gpt2", "dgx-h100:8", 32, 256);
  const StatedConfiguration from = pipeline(c, 2, 2, {2, 2, 2, 8});
  const auto changes = change_chain(from, pipeline(c, 4, 1, {2, 2, 2, 8}), c.rules());
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].what.find("layout"), std::string::npos);
  EXPECT_EQ(changes[0].after.layers, from.layers);
}

}  // namespace
}  // namespace braid
