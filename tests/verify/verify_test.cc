#include "braid/verify/verify.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/registry.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/checks.h"

#include "base/error_text.h"
#include "plan/heterogeneous_plan.h"
#include "planners/tiny_job.h"
#include "report/plan_maker.h"

namespace braid {
namespace {

/// A plan that the planner finds for a small random job with the given restrictions.
struct Made {
  Graph graph;
  System system;
  Outcome outcome;
};

void make(std::uint64_t seed, int devices, const SpaceOptions& space, Made& made) {
  std::mt19937_64 random(seed);
  made.graph = test::tiny_graph(random, 8);
  if (seed % 2 == 0) test::tie_layers(made.graph, 0, 7);
  if (seed % 6 == 0) test::tie_layers(made.graph, 0, 4);
  made.system = test::tiny_system(random, devices, 1e9);
  Job job;
  job.graph = &made.graph;
  job.global_batch = 16;
  made.outcome = plan_braid(job, made.system, space, {});
}

Plan piped_plan() {
  SpaceOptions space;
  space.micro_batch = 1;
  space.pp = 2;
  space.tp = 1;
  space.dp = 2;
  space.micro_batch = 1;
  space.vp = 1;
  space.allow_offload = false;
  Made made;
  make(7, 4, space, made);
  EXPECT_FALSE(made.outcome.candidates.empty());
  return made.outcome.candidates.front().plan;
}

/// Names of the checks that fail.
std::vector<std::string> failing(const Plan& plan) {
  std::vector<std::string> names;
  for (const Check& check : verify(plan).checks) {
    if (!check.holds) names.push_back(check.name);
  }
  return names;
}

using Names = std::vector<std::string>;

Claims claims_of(const Metrics& metrics) {
  return {metrics.iteration_time_s, metrics.peak_memory_bytes, 0, 0, 0};
}

/// The verifier's replay and the simulator are two programs for the same rules: they agree to the
/// last few bits on every kind of plan.
TEST(Verify, HoldsForWhatThePlannerFinds) {
  int plans = 0;
  std::set<std::tuple<bool, bool, bool, Zero, bool, ScheduleKind>> kinds;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Made made;
    SpaceOptions space;
    space.top = 5;
    if (seed % 3 == 1) space.zero = static_cast<Zero>(seed / 3 % 4);
    if (seed % 5 == 2) space.schedule = ScheduleKind::gpipe;
    if (seed % 5 == 3 && seed % 4 > 1) space.pp = 2;
    make(seed, 1 << (seed % 4), space, made);
    for (const auto& [plan, metrics] : made.outcome.candidates) {
      const Verification verification = verify(plan, claims_of(metrics));
      for (const Check& check : verification.checks) {
        EXPECT_TRUE(check.holds) << "seed " << seed << " " << check.name << ": " << check.detail;
      }
      EXPECT_EQ(verification.checks.size(), 10U);
      EXPECT_NEAR(verification.iteration_time_s, metrics.iteration_time_s,
                  1e-10 * metrics.iteration_time_s);
      EXPECT_LE(verification.lower_bound_s, verification.iteration_time_s * (1 + 1e-9));
      const Parallelism& p = plan.parallel;
      kinds.insert({p.pp > 1, p.vp > 1, p.tp > 1, p.zero, p.offload_optimizer, p.schedule});
      ++plans;
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(kinds.size(), 12U);
}

/// Stages with degrees, micro-batches, options and devices of their own, on one or two kinds of
/// chips.
TEST(Verify, ReplaysWhatTheSimulatorSaysOfHeterogeneousStages) {
  std::mt19937_64 random(77);
  for (int trial = 0; trial < 400; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1, trial % 3 == 0);
    if (trial % 5 > 1) test::share_parameters(random, plan.profile);
    const Metrics metrics = measure(plan);
    const Verification verification = verify(plan, claims_of(metrics));
    for (const Check& check : verification.checks) {
      EXPECT_TRUE(check.holds) << "trial " << trial << " " << check.name << ": " << check.detail;
    }
    EXPECT_EQ(verification.checks.size(), 10U);
    EXPECT_NEAR(verification.iteration_time_s, metrics.iteration_time_s,
                1e-10 * metrics.iteration_time_s);
    EXPECT_NEAR(verification.peak_memory_bytes, metrics.peak_memory_bytes,
                1e-9 * metrics.peak_memory_bytes);
  }
}

/// Whether the plan runs: both programs time it alike, or both name a stage that waits for ever.
bool runs_alike(const Plan& plan, int trial) {
  try {
    const Metrics metrics = measure(plan);
    const Verification verification = verify(plan, claims_of(metrics));
    for (const Check& check : verification.checks) {
      EXPECT_TRUE(check.holds) << "trial " << trial << " " << check.name << ": " << check.detail;
    }
    EXPECT_NEAR(verification.iteration_time_s, metrics.iteration_time_s,
                1e-10 * metrics.iteration_time_s);
    EXPECT_NEAR(verification.peak_memory_bytes, metrics.peak_memory_bytes,
                1e-9 * metrics.peak_memory_bytes);
    return true;
  } catch (const Error& error) {
    const Check last = verify(plan).checks.back();
    EXPECT_EQ(last.name, "schedule");
    EXPECT_FALSE(last.holds);
    const std::string stage = last.detail.substr(0, last.detail.find(';'));
    EXPECT_EQ(stage.substr(0, 6), "stage ");
    EXPECT_EQ(std::string(error.what()).substr(0, stage.size()), stage);
    return false;
  }
}

TEST(Verify, ReplaysWhatTheSimulatorSaysOfWarmUps) {
  std::mt19937_64 random(79);
  int ran = 0, stuck = 0;
  for (int trial = 0; trial < 600; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1, trial % 3 == 0);
    test::draw_warm_ups(random, plan, trial % 4 > 0);
    ++(runs_alike(plan, trial) ? ran : stuck);
  }
  EXPECT_GT(ran, 300);
  EXPECT_GT(stuck, 20);
}

TEST(Verify, ReplaysWhatTheSimulatorSaysOfOrdersOfPasses) {
  std::mt19937_64 random(81);
  int ran = 0, stuck = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Plan plan = test::heterogeneous_plan(random, trial % 2 == 1, trial % 3 == 0);
    test::draw_passes(random, plan, trial % 4 > 0);
    if (trial % 5 == 0) plan.stages.front().own->passes.clear();  // By the schedule's rule.
    ++(runs_alike(plan, trial) ? ran : stuck);
  }
  EXPECT_GT(ran, 250);
  EXPECT_GT(stuck, 20);
}

TEST(Verify, RefusesOrdersOfPassesThatStagesCannotHave) {
  std::mt19937_64 random(82);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random);
  } while (plan.stages.size() < 2 || form_of(plan, 1).num_micro_batches != 4);
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  using Runs = std::vector<PassRun>;
  for (const Runs& passes :
       {Runs{{1, 1, 3}}, Runs{{1, 1, 5}}, Runs{{4, 3, 1}}, Runs{{0, 1, 4}}, Runs{{1, 1, -4}},
        Runs{{kHuge, kHuge, kHuge}}, Runs{{kHuge, 1, 1}, {kHuge, 1, kHuge}}}) {
    plan.stages[1].own->passes = passes;
    EXPECT_EQ(failing(plan), Names{"batch"});
    EXPECT_THROW(measure(plan), Error);
  }
  // All there, but a backward pass before its forward pass.
  plan.stages[1].own->passes = {{1, 2, 1}, {3, 2, 1}};
  EXPECT_EQ(failing(plan), Names{"schedule"});
  EXPECT_THROW(measure(plan), Error);
  plan.stages[1].own->passes = {{4, 4, 1}};
  plan.stages[1].own->warm_up = 4;
  EXPECT_EQ(failing(plan), Names{"batch"});
  plan.stages[1].own->warm_up.reset();
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_EQ(failing(plan), Names{"batch"});
  EXPECT_THROW(measure(plan), Error);
}

TEST(Verify, RefusesWarmUpsThatStagesCannotHave) {
  std::mt19937_64 random(80);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random);
  } while (plan.stages.size() < 2 || form_of(plan, 1).num_micro_batches < 2);
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 40}) {
    plan.stages[1].own->warm_up = count;
    EXPECT_EQ(failing(plan), Names{"batch"}) << count;
    EXPECT_THROW(measure(plan), Error) << count;
  }
  plan.stages[1].own->warm_up = 1;
  plan.parallel.schedule = ScheduleKind::gpipe;
  EXPECT_EQ(failing(plan), Names{"batch"});
  EXPECT_THROW(measure(plan), Error);
}

TEST(Verify, FindsWhatIsWrongWithHeterogeneousStages) {
  std::mt19937_64 random(78);
  Plan plan;
  do {
    plan = test::heterogeneous_plan(random);
  } while (plan.stages.size() < 3);
  ASSERT_EQ(failing(plan), Names{});
  const auto spoil = [&](const std::function<void(Plan&)>& change) {
    Plan bad = plan;
    change(bad);
    return failing(bad);
  };
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices = p.stages[1].devices; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices[0] = p.system.device_count; }),
            Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices.pop_back(); }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[1].own->micro_batch = 0; }).front(), "options");
  EXPECT_EQ(spoil([](Plan& p) { p.stages[1].dp = -1; }).front(), "options");
  EXPECT_EQ(spoil([](Plan& p) { p.global_batch = 25; }), Names{"batch"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[2].tp += 1; }).front(), "options");
  EXPECT_EQ(spoil([](Plan& p) {
              for (Option& option : p.profile.kinds[0]) option.how.micro_batch += 1;
            }),
            Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[1].own.reset(); }).front(), "options");
}

/// Stages that form a graph, and chunks that hand over to several others.
TEST(Verify, ReplaysWhatTheSimulatorSaysOfAnyEdges) {
  std::mt19937_64 random(2024);
  int compared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Parallelism p;
    p.pp = test::pick(random, 1, 5);
    p.dp = test::pick(random, 1, 3);
    p.vp = trial % 3 == 0 ? test::pick(random, 1, 3) : 1;
    if (p.vp > 1) p.schedule = ScheduleKind::interleaved;
    if (p.vp == 1 && trial % 4 == 1) p.schedule = ScheduleKind::gpipe;
    p.num_micro_batches = p.pp * test::pick(random, 1, 4);
    p.zero = static_cast<Zero>(test::pick(random, 0, 3));
    Plan plan = test::made_plan(p, test::pick(random, p.pp * p.vp, 20));
    const auto layers = static_cast<int>(plan.profile.layers.size());
    plan.profile.edges.clear();
    for (int l = 0; l + 1 < layers; ++l) {
      // Some neighbours are not joined, some far apart are.
      const double bytes = 1e4 * test::pick(random, 1, 300);
      if (test::pick(random, 0, 5) > 0) plan.profile.edges.push_back({l, l + 1, bytes});
      const int far = test::pick(random, l + 1, layers - 1);
      if (far > l + 1 && test::pick(random, 0, 3) == 0) {
        plan.profile.edges.push_back({l, far, bytes});
      }
    }
    std::sort(plan.profile.edges.begin(), plan.profile.edges.end(),
              [](const ProfileEdge& a, const ProfileEdge& b) {
                return std::pair(a.source, a.target) < std::pair(b.source, b.target);
              });
    if (trial % 5 > 1) test::share_parameters(random, plan.profile);
    for (auto& kind : plan.profile.kinds) {
      kind[0].cost.forward.compute_s = 1e-4 * test::pick(random, 1, 50);
      kind[0].cost.backward_weight.compute_s = 1e-4 * test::pick(random, 1, 50);
      kind[0].cost.dense_parameters = 1e5 * test::pick(random, 0, 9);
    }
    double simulated_s = 0;
    try {
      simulated_s = simulate_time_s(plan);
    } catch (const Error&) {
      // Interleaving over edges that skip chunks may deadlock; then the verifier must say so.
      EXPECT_FALSE(verify(plan).holds());
      continue;
    }
    const Verification verification = verify(plan);
    EXPECT_TRUE(verification.holds());
    EXPECT_NEAR(verification.iteration_time_s, simulated_s, 1e-10 * simulated_s) << trial;
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(Verify, CountsAsMuchMemoryAsTheModel) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Made made;
    SpaceOptions space;
    space.pp = 1 + static_cast<int>(seed % 2);
    if (seed % 4 == 3) space.vp = 2;
    make(seed, 4, space, made);
    if (made.outcome.candidates.empty()) continue;
    Plan plan = made.outcome.candidates.front().plan;
    double fullest = 0;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      fullest = std::max(fullest, memory_of_stages(plan)[s].device_total());
    }
    Chip& chip = plan.system.groups.front().chip;
    chip.memory.bytes = fullest + chip.reserved_bytes;
    EXPECT_EQ(failing(plan), Names{}) << "seed " << seed;
    chip.memory.bytes = fullest * (1 - 1e-6) - 1 + chip.reserved_bytes;
    EXPECT_EQ(failing(plan), Names{"memory"}) << "seed " << seed;
  }
}

TEST(Verify, FindsALayerThatIsMissing) {
  Plan plan = piped_plan();
  Chunk& chunk = plan.stages[0].chunks[0];
  chunk.layers.pop_back();
  chunk.options.pop_back();
  EXPECT_EQ(failing(plan), Names{"coverage"});
}

TEST(Verify, FindsALayerThatIsPlacedTwice) {
  Plan plan = piped_plan();
  Chunk& chunk = plan.stages[0].chunks[0];
  chunk.layers.push_back(plan.stages[1].chunks[0].layers.front());
  chunk.options.push_back(0);
  EXPECT_EQ(failing(plan), Names{"coverage"});
}

TEST(Verify, FindsLayersThatDoNotExistAndEmptyChunks) {
  for (const std::int32_t layer : {-1, 1000}) {
    Plan plan = piped_plan();
    plan.stages[0].chunks[0].layers.front() = layer;
    EXPECT_EQ(failing(plan), Names{"coverage"});
  }
  Plan plan = piped_plan();
  plan.stages[0].chunks[0] = {};
  EXPECT_EQ(failing(plan), Names{"coverage"});
  plan = piped_plan();
  plan.stages[1].chunks.clear();
  EXPECT_EQ(failing(plan), Names{"coverage"});
  plan.stages.clear();
  EXPECT_EQ(failing(plan), Names{"coverage"});
}

TEST(Verify, FindsAnEdgeThatLeadsBack) {
  Plan plan = piped_plan();
  std::swap(plan.stages[0].chunks, plan.stages[1].chunks);
  EXPECT_EQ(failing(plan), Names{"edges"});
}

TEST(Verify, FindsEdgesThatAreNotValid) {
  for (const ProfileEdge edge : {ProfileEdge{-1, 1, 1}, ProfileEdge{0, 99, 1}, ProfileEdge{2, 2, 1},
                                 ProfileEdge{0, 1, std::numeric_limits<double>::quiet_NaN()}}) {
    Plan plan = piped_plan();
    plan.profile.edges.push_back(edge);
    EXPECT_EQ(failing(plan), Names{"edges"});
  }
}

TEST(Verify, FindsOptionsThatDoNotExistOrDisagree) {
  const auto spoil = [](auto change) {
    Plan plan = piped_plan();
    change(plan);
    return failing(plan);
  };
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].chunks[0].options.front() = 5; }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].chunks[0].options.pop_back(); }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.profile.layers[0].kind = 77; }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.profile.kinds[0][0].how.tp = 2; }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.profile.kinds[0][0].how.micro_batch += 1; }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.profile.kinds[0][0].how.offload_weights = true; }),
            Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) { p.profile.kinds[0][0].cost.stash_bytes = -1; }), Names{"options"});
  EXPECT_EQ(spoil([](Plan& p) {
              p.profile.kinds[0][0].cost.forward.compute_s =
                  std::numeric_limits<double>::infinity();
            }),
            Names{"options"});
}

TEST(Verify, FindsSharedParametersThatAreNotValid) {
  for (const SharedParameter& bad :
       {SharedParameter{{0, 8}, 1, false}, SharedParameter{{-1, 2}, 1, false},
        SharedParameter{{0, 7}, -1, false},
        SharedParameter{{0, 7}, std::numeric_limits<double>::infinity(), false}}) {
    Plan plan = piped_plan();
    plan.profile.shared.push_back(bad);
    EXPECT_EQ(failing(plan), Names{"options"});
  }
}

TEST(Verify, FindsDevicesThatAreSharedMissingOrElsewhere) {
  const auto spoil = [](auto change) {
    Plan plan = piped_plan();
    change(plan);
    return failing(plan);
  };
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices = p.stages[1].devices; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices.pop_back(); }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices.front() = 4; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].devices.front() = -1; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { std::swap(p.stages[0].devices, p.stages[1].devices); }),
            Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.stages[0].tp = 2; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.system.device_count = 3; }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.parallel.order.pop_back(); }), Names{"devices"});
  EXPECT_EQ(spoil([](Plan& p) { p.parallel.order[0] = p.parallel.order[1]; }), Names{"devices"});
}

TEST(Verify, FindsABatchThatDoesNotAddUp) {
  Plan plan = piped_plan();
  ++plan.global_batch;
  EXPECT_EQ(failing(plan), Names{"batch"});
  plan = piped_plan();
  plan.parallel.num_micro_batches = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(failing(plan), Names{"batch"});
  plan.parallel.num_micro_batches = 0;
  EXPECT_EQ(failing(plan), Names{"batch"});
}

TEST(Verify, SpreadsWholeExpertsOverTensorParallelRanks) {
  const auto fault = [](int ep, bool sequence_parallel, bool whole_experts) {
    Parallelism p;
    p.tp = 2;
    p.dp = 4;
    p.ep = ep;
    p.sequence_parallel = sequence_parallel;
    p.whole_experts = whole_experts;
    Plan plan;
    plan.global_batch = 4;
    plan.parallel = p;
    return batch_fault(plan);
  };
  EXPECT_EQ(fault(4, true, false), "");
  EXPECT_EQ(fault(8, true, false), "ep 8 does not divide dp 4 x cp 1");
  EXPECT_EQ(fault(8, true, true), "");
  EXPECT_EQ(fault(3, true, true), "ep 3 does not divide dp 4 x cp 1 x tp 2");
  EXPECT_EQ(fault(8, false, true), "experts that tp does not divide need sequence parallelism");
}

TEST(Verify, FindsSchedulesThatCannotBeRun) {
  Plan plan = piped_plan();
  plan.parallel.schedule = ScheduleKind::one_f_one_b;
  plan.parallel.vp = 2;
  for (Stage& stage : plan.stages) {
    Chunk& chunk = stage.chunks.front();
    Chunk second;
    second.layers = {chunk.layers.back()};
    second.options = {chunk.options.back()};
    chunk.layers.pop_back();
    chunk.options.pop_back();
    stage.chunks.push_back(second);
  }
  plan.profile.edges.clear();
  EXPECT_EQ(failing(plan), Names{"schedule"});
  plan.parallel.schedule = ScheduleKind::interleaved;
  EXPECT_EQ(failing(plan), Names{});
  // Three micro-batches cannot be dealt in groups of two.
  plan.parallel.num_micro_batches = 3;
  plan.global_batch = std::int64_t{3} * plan.parallel.dp * plan.parallel.micro_batch;
  EXPECT_EQ(failing(plan), Names{"schedule"});
}

TEST(Verify, RefusesToReplayAbsurdlyManyPasses) {
  Plan plan = piped_plan();
  plan.parallel.num_micro_batches = std::int64_t{1} << 40;
  plan.global_batch =
      plan.parallel.num_micro_batches * plan.parallel.dp * plan.parallel.micro_batch;
  // Neither right nor wrong: it cannot be told.
  EXPECT_THAT(error_text([&] { verify(plan); }), ::testing::HasSubstr("use larger micro-batches"));
}

TEST(Verify, FindsArithmeticThatOutrunsThePeak) {
  Plan plan = piped_plan();
  for (auto& kind : plan.profile.kinds) kind[0].cost.model_flops *= 1e6;
  EXPECT_EQ(failing(plan), Names{"bound"});
}

TEST(Verify, FindsClaimsThatAreTooGoodOrTooBad) {
  Plan plan = piped_plan();
  const Metrics metrics = measure(plan);
  plan.claims = claims_of(metrics);
  EXPECT_EQ(failing(plan), Names{});
  for (const double factor : {0.0, 0.5, 0.99999, 1.00001, 2.0}) {
    plan.claims->iteration_time_s = metrics.iteration_time_s * factor;
    EXPECT_EQ(failing(plan), Names{"claims"}) << factor;
  }
  plan.claims = claims_of(metrics);
  for (const double factor : {0.999, 1.001}) {
    plan.claims->peak_memory_bytes = metrics.peak_memory_bytes * factor;
    EXPECT_EQ(failing(plan), Names{"claims"}) << factor;
  }
}

/// What changes a plan's time without breaking its form shows against its claim.
TEST(Verify, FindsWhateverChangesThePlansTime) {
  SpaceOptions space;
  space.micro_batch = 1;
  space.pp = 2;
  space.tp = 1;
  space.dp = 2;
  space.vp = 1;
  space.zero = Zero::optimizer;
  space.schedule = ScheduleKind::one_f_one_b;
  Made made;
  make(7, 4, space, made);
  ASSERT_FALSE(made.outcome.candidates.empty());
  const Candidate& good = made.outcome.candidates.front();
  using Change = std::function<void(Plan&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"a faster layer", [](Plan& p) { p.profile.kinds[0][0].cost.forward.compute_s *= 0.9; }},
      {"a slower layer",
       [](Plan& p) { p.profile.kinds[0][0].cost.backward_input.compute_s *= 20; }},
      {"recomputation forgotten",
       [](Plan& p) { p.profile.kinds[0][0].cost.recompute.compute_s += 1e-3; }},
      {"tensor communication", [](Plan& p) { p.profile.kinds[0][0].cost.forward.tp_comm_s = 1; }},
      {"larger hand-overs",
       [](Plan& p) {
         for (ProfileEdge& edge : p.profile.edges) edge.bytes *= 1000;
       }},
      {"a parameter that both stages hold",
       [](Plan& p) {
         p.profile.shared.push_back({{0, 7}, 1e6, true});
       }},
      {"more parameters", [](Plan& p) { p.profile.kinds[0][0].cost.dense_parameters *= 100; }},
      {"a layer moved to the other stage",
       [](Plan& p) {
         Chunk& first = p.stages[0].chunks[0];
         Chunk& second = p.stages[1].chunks[0];
         first.layers.push_back(second.layers.front());
         first.options.push_back(second.options.front());
         second.layers.erase(second.layers.begin());
         second.options.erase(second.options.begin());
       }},
      {"another schedule",
       [](Plan& p) {
         // It may take as long, but holds more stashes.
         p.parallel.schedule = ScheduleKind::gpipe;
       }},
      {"another ZeRO stage", [](Plan& p) { p.parallel.zero = Zero::none; }},
      {"a slower network",
       [](Plan& p) {
         p.system.groups[0].intra_node.bytes_per_s /= 1000;
         p.system.groups[0].intra_node.unit_bytes_per_s /= 1000;
         for (NetworkLevel& level : p.system.levels) {
           level.bytes_per_s /= 1000;
           level.unit_bytes_per_s /= 1000;
         }
       }},
      {"slower memory", [](Plan& p) { p.system.groups[0].chip.memory.bytes_per_s /= 1e4; }},
      {"more micro-batches",
       [](Plan& p) {
         p.parallel.num_micro_batches *= 2;
         p.global_batch *= 2;
       }},
  };
  for (const auto& [what, change] : changes) {
    Plan plan = good.plan;
    plan.claims = claims_of(good.metrics);
    EXPECT_EQ(failing(plan), Names{});
    change(plan);
    const Names names = failing(plan);
    EXPECT_TRUE(names == Names{"claims"} || names == (Names{"memory", "claims"})) << what;
  }
}

/// One stage and no communication: the replay is the sum of the passes.
TEST(Verify, ReplaysASingleStageAsASum) {
  SpaceOptions space;
  space.pp = 1;
  Made made;
  make(3, 1, space, made);
  ASSERT_FALSE(made.outcome.candidates.empty());
  const Plan& plan = made.outcome.candidates.front().plan;
  double sum_s = 0;
  for (const std::int32_t layer : plan.stages[0].chunks[0].layers) {
    const LayerCost& cost = options_of(plan.profile, layer)[0].cost;
    sum_s += cost.forward.total_s() + cost.backward_s();
  }
  sum_s *= static_cast<double>(plan.parallel.num_micro_batches);
  const double replayed_s = verify(plan).iteration_time_s;
  EXPECT_GE(replayed_s, sum_s * (1 - 1e-12));
  EXPECT_NEAR(replayed_s, simulate_time_s(plan), 1e-12 * replayed_s);
}

}  // namespace
}  // namespace braid
