#include "braid/planners/piper_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/assess.h"
#include "braid/planners/piper_variants.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Piper's time per sample of a plan, from the definition.
double time_per_sample(const Plan& plan, double bandwidth) {
  const Parallelism& p = plan.parallel;
  const auto batch = static_cast<double>(plan.global_batch / p.micro_batch);
  double slowest = 0;
  for (const Stage& stage : plan.stages) {
    const Chunk& chunk = stage.chunks.at(0);
    const std::set<std::int32_t> inside(chunk.layers.begin(), chunk.layers.end());
    double time = 0, gradient_bytes = 0, border_bytes = 0;
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const LayerCost& cost =
          options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])]
              .cost;
      for (const PassTime* pass :
           {&cost.forward, &cost.recompute, &cost.backward_input, &cost.backward_weight}) {
        time += pass->total_s();
      }
      gradient_bytes += 4 * cost.dense_parameters;
    }
    for (const ProfileEdge& edge : plan.profile.edges) {
      if (inside.count(edge.source) != inside.count(edge.target)) {
        border_bytes += 2 * edge.bytes * p.micro_batch / (p.sequence_parallel ? p.tp : 1);
      }
    }
    const double d = p.dp;
    slowest = std::max(slowest, (time + border_bytes / bandwidth) / d +
                                    4 * (d - 1) / d * gradient_bytes / batch / bandwidth);
  }
  return slowest / p.micro_batch;
}

double flat_bandwidth(const System& system) {
  return system.levels.empty() ? system.groups.front().intra_node.bytes_per_s
                               : system.levels.back().bytes_per_s;
}

struct Instance {
  Graph graph;
  System system;
  Job job;
};

void make(std::mt19937_64& random, double memory_bytes, Instance& instance) {
  instance.graph = testing::tiny_graph(random, testing::pick(random, 1, 5));
  instance.system = testing::tiny_system(random, testing::pick(random, 1, 6), memory_bytes);
  instance.job.graph = &instance.graph;
  instance.job.global_batch = testing::pick(random, 1, 8);
}

/// Least time per sample over every uniform form and every cut of the chain, memory ignored.
double exhaustive(const Instance& instance) {
  const ChainJob chain = chain_job(instance.job, instance.system);
  LayerTables tables(instance.graph, instance.job.precision, instance.system);
  const SplitLimits split = split_limits(instance.graph);
  const auto layers = static_cast<int>(instance.graph.layers.size());
  const auto devices = static_cast<int>(instance.system.device_count);
  double best = kInfinity;
  for (int tp = 1; tp <= instance.system.groups.front().devices_per_node; ++tp) {
    for (int micro_batch = 1; micro_batch <= 16; micro_batch *= 2) {
      for (int dp = 1; dp * tp <= devices; ++dp) {
        if (instance.job.global_batch % (dp * micro_batch) != 0) continue;
        Configuration form;
        form.tp = tp;
        form.micro_batch = micro_batch;
        form.dp = dp;
        form.num_micro_batches = instance.job.global_batch / (dp * micro_batch);
        form.sequence_parallel = tp > 1;
        if (!refusal(split, to_execution(form)).empty()) form.sequence_parallel = false;
        if (!refusal(split, to_execution(form)).empty()) continue;
        for (unsigned cuts = 0; cuts < 1U << (layers - 1); ++cuts) {
          Ends ends;
          for (int l = 1; l < layers; ++l) {
            if ((cuts >> (l - 1) & 1) != 0) ends.push_back(l);
          }
          ends.push_back(layers);
          form.pp = static_cast<std::int32_t>(ends.size());
          if (form.pp * tp * dp > devices ||
              form.pp * dp > instance.job.global_batch / micro_batch) {
            continue;
          }
          const Plan plan = build_plan(chain, tables, form, ends, "test");
          best = std::min(best, time_per_sample(plan, flat_bandwidth(instance.system)));
        }
      }
    }
  }
  return best;
}

TEST(PiperPlanner, FindsTheLeastTimePerSample) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 150; ++i) {
    Instance instance;
    make(random, 1e15, instance);
    const Outcome outcome = plan_piper("piper", instance.job, instance.system, {}, {});
    ASSERT_EQ(outcome.status, Status::optimal) << i;
    const double best = exhaustive(instance);
    ASSERT_NEAR(outcome.objective, best, 1e-9 * best) << i;
    const Plan& plan = outcome.candidates.front().plan;
    ASSERT_NEAR(time_per_sample(plan, flat_bandwidth(instance.system)), best, 1e-9 * best) << i;
  }
}

TEST(PiperPlanner, KeepsMemoryAndNoSmallerSpaceWins) {
  std::mt19937_64 random(2);
  int tight = 0, infeasible = 0;
  for (int i = 0; i < 150; ++i) {
    Instance instance;
    make(random, 1e6 * testing::pick(random, 1, 60), instance);
    const Outcome best = plan_piper("piper", instance.job, instance.system, {}, {});
    for (const PiperVariant& variant : piper_variants()) {
      const Outcome outcome = plan_piper(variant.name, instance.job, instance.system, {}, {});
      if (outcome.candidates.empty()) {
        EXPECT_EQ(outcome.status, Status::infeasible) << variant.name;
        ASSERT_TRUE(outcome.infeasibility.has_value()) << variant.name;
        EXPECT_FALSE(outcome.infeasibility->reason.empty()) << variant.name;
        ++infeasible;
        continue;
      }
      const Candidate& candidate = outcome.candidates.front();
      EXPECT_EQ(candidate.plan.planner, variant.name);
      ASSERT_FALSE(best.candidates.empty()) << variant.name;
      EXPECT_GE(outcome.objective, best.objective * (1 - 1e-9)) << variant.name;
      for (std::size_t s = 0; s < candidate.plan.stages.size(); ++s) {
        EXPECT_LE(memory_of_stage(candidate.plan, s).device_total(),
                  usable_bytes(instance.system.groups.front().chip));
      }
      if (candidate.plan.parallel.recompute != Recompute::none) ++tight;
    }
  }
  // The cases are of both kinds.
  EXPECT_GT(tight, 0);
  EXPECT_GT(infeasible, 0);
}

TEST(PiperPlanner, RestrictionsAreKept) {
  std::mt19937_64 random(3);
  Instance instance;
  instance.graph = testing::tiny_graph(random, 4);
  instance.system = testing::tiny_system(random, 4, 1e12);
  instance.job.graph = &instance.graph;
  instance.job.global_batch = 8;
  SpaceOptions space;
  space.dp = 2;
  space.micro_batch = 2;
  space.recompute = Recompute::full;
  const Outcome outcome = plan_piper("piper", instance.job, instance.system, space, {});
  ASSERT_FALSE(outcome.candidates.empty());
  const Parallelism& parallel = outcome.candidates.front().plan.parallel;
  EXPECT_EQ(parallel.dp, 2);
  EXPECT_EQ(parallel.micro_batch, 2);
  EXPECT_EQ(parallel.recompute, Recompute::full);
  space.pp = 2;
  const Outcome outside = plan_piper("piper", instance.job, instance.system, space, {});
  EXPECT_EQ(outside.status, Status::infeasible);
  EXPECT_NE(outside.infeasibility->reason.find("--pp"), std::string::npos);
  EXPECT_THROW(plan_piper("none", instance.job, instance.system, {}, {}), Error);
}

}  // namespace
}  // namespace braid
