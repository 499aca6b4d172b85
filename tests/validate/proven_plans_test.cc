#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/registry.h"
#include "braid/schedule/timeline.h"
#include "braid/verify/verify.h"

#include "planners/tiny_job.h"
#include "validate/single_changes.h"

namespace braid {
namespace {

using test::pick;

/// A small job, mostly short of memory.
struct ProvenJob {
  Graph graph;
  System system;
  Job job;
  SpaceOptions space;

  explicit ProvenJob(std::uint64_t seed) {
    std::mt19937_64 random(seed * 7919 + 17);
    graph = test::tiny_graph(random, pick(random, 2, 10));
    if (seed % 3 == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
    const double memory_bytes = pick(random, 0, 4) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    system = test::tiny_system(random, 1 << pick(random, 0, 3), memory_bytes);
    // Every trainer of the catalogue in turn, and none in particular.
    const std::vector<TrainerFile>& trainers = trainer_catalogue();
    if (const std::size_t number = seed % (trainers.size() + 1); number < trainers.size()) {
      job.trainer = trainers[number].trainer({});
      space.can = trainers[number].can;
      adapt_graph(job.trainer.does, graph);
    }
    job.graph = &graph;
    job.global_batch = pick(random, 1, 16);
    if (pick(random, 0, 1) == 0) space.pp = 1 << pick(random, 1, 2);
    if (space.pp.least() > std::min<std::int64_t>(system.device_count, std::ssize(graph.layers)))
      space.pp = {};
    if (!space.pp.is_any() && pick(random, 0, 2) == 0) space.vp = 2;
    if (space.pp.least() * space.vp.least() > static_cast<int>(graph.layers.size())) {
      space.vp = {};
    }
    // Lists and limits in some of them.
    if (seed % 7 == 3) {
      space.vp = Degrees({1, 3});
      space.micro_batch = Degrees({1, 2, 8}, 2);
    } else if (seed % 7 == 5) {
      space.tp = Degrees({}, 2);
      space.micro_batch = Degrees({1, 4});
      space.vp = Degrees({}, 2);
    }
  }
};

/// As many random jobs in all shards as BRAID_PROVEN_JOBS says. With 2,000 they take two seconds in
/// an optimised build.
std::uint64_t proven_jobs_of_a_shard(std::uint64_t shards) {
  const char* jobs = std::getenv("BRAID_PROVEN_JOBS");
  return (jobs == nullptr ? 1000 : std::strtoull(jobs, nullptr, 10)) / shards;
}

class ProvenPlans : public ::testing::TestWithParam<std::uint64_t> {};

// Nothing that the verifier accepts and that differs in one thing from a plan called proven is
// faster.
TEST_P(ProvenPlans, HaveNoFasterSingleChange) {
  const std::uint64_t jobs = proven_jobs_of_a_shard(5);
  int found = 0, proven = 0, interleaved = 0, accepted = 0;
  for (std::uint64_t seed = jobs * GetParam(); seed < jobs * (GetParam() + 1); ++seed) {
    const ProvenJob tiny(seed);
    const Outcome outcome = plan_braid(tiny.job, tiny.system, tiny.space, {}, {});
    if (outcome.candidates.empty()) continue;
    ++found;
    const Candidate& best = outcome.candidates.front();
    if (outcome.status != Status::optimal) continue;
    ++proven;
    interleaved += best.plan.parallel.vp > 1 ? 1 : 0;
    const test::FastestChange fastest =
        test::fastest_single_change(best.plan, tiny.graph, tiny.space);
    accepted += fastest.accepted;
    EXPECT_FALSE(fastest.is_faster())
        << "job " << seed << ": " << fastest.what << " takes " << fastest.time_s << " s instead of "
        << fastest.plan_s << " s";
  }
  EXPECT_GT(found, static_cast<int>(jobs) / 3);
  EXPECT_GT(proven, found / 2);
  EXPECT_GT(interleaved, 0);
  EXPECT_GT(accepted, 2 * proven);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProvenPlans, ::testing::Range<std::uint64_t>(0, 5));

/// Visits every form of so many devices, nested or not, whatever the planner's space.
void each_form(int devices, std::int64_t batch,
               const std::function<void(const Parallelism&)>& visit) {
  Parallelism p;
  for (p.tp = 1; p.tp <= devices; p.tp *= 2) {
    for (p.cp = 1; p.tp * p.cp <= devices; p.cp *= 2) {
      for (p.pp = 1; p.tp * p.cp * p.pp <= devices; p.pp *= 2) {
        p.dp = devices / (p.tp * p.cp * p.pp);
        for (p.ep = 1; p.ep <= 8; p.ep *= 2) {
          for (p.micro_batch = 1; batch % (std::int64_t{p.dp} * p.micro_batch) == 0;
               p.micro_batch *= 2) {
            p.num_micro_batches = batch / (std::int64_t{p.dp} * p.micro_batch);
            for (int forms = 0; forms < 8; ++forms) {
              p.sequence_parallel = (forms & 1) != 0 && p.tp > 1;
              p.whole_experts = (forms & 2) != 0 && p.tp > 1;
              p.zero = (forms & 4) != 0 && p.dp * p.cp > 1 ? Zero::optimizer : Zero::none;
              visit(p);
            }
          }
        }
      }
    }
  }
}

// Nor is any form of all devices that the verifier accepts, experts whole or sharded.
TEST(ProvenForms, NoneOfExpertsIsFaster) {
  ModelOptions options;
  options.seq_len = 64;
  options.layers = 2;
  const Graph graph = load_model("mixtral-8x7b", options);
  std::mt19937_64 random(577);
  int accepted = 0, whole = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const int devices = 4 << pick(random, 0, 1);
    const System system = test::tiny_system(random, devices, 1e11 * pick(random, 1, 9));
    Job job;
    job.graph = &graph;
    job.global_batch = 8;
    const Outcome outcome = plan_braid(job, system, {}, {}, {});
    if (outcome.status != Status::optimal) continue;
    whole += outcome.candidates.front().plan.parallel.whole_experts ? 1 : 0;
    each_form(devices, job.global_batch, [&](const Parallelism& form) {
      if (form.expert_axis() % form.ep != 0) return;
      Plan plan;
      try {
        plan = direct_plan(graph, {form, job.precision, job.trainer, job.global_batch}, system);
      } catch (const Error&) {
        return;  // The model does not allow it.
      }
      const Verification held = verify(plan);
      if (!held.holds()) return;
      ++accepted;
      EXPECT_GE(held.iteration_time_s, outcome.objective * (1 - 1e-9))
          << "trial " << trial << ": tp " << form.tp << " cp " << form.cp << " pp " << form.pp
          << " ep " << form.ep << (form.whole_experts ? " whole" : "");
    });
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(whole, 0);
}

// What the changes are built with gives the plan itself again.
TEST(SingleChanges, AreBuiltLikeThePlanItself) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const ProvenJob tiny(seed);
    const Outcome outcome = plan_braid(tiny.job, tiny.system, tiny.space, {}, {});
    if (outcome.candidates.empty()) continue;
    const Plan& plan = outcome.candidates.front().plan;
    const std::vector<std::int32_t> counts = layer_counts(plan);
    const Verification own = verify(plan);
    const Verification built = verify(
        direct_plan(tiny.graph, {plan.parallel, plan.precision, plan.trainer, plan.global_batch},
                    plan.system, counts));
    EXPECT_TRUE(built.holds()) << seed;
    EXPECT_NEAR(built.iteration_time_s, own.iteration_time_s, 1e-12 * own.iteration_time_s) << seed;
    EXPECT_NEAR(built.peak_memory_bytes, own.peak_memory_bytes, 1e-12 * own.peak_memory_bytes);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace braid
