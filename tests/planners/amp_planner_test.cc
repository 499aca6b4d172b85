#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/graph/tensor_size.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/stage_context.h"
#include "braid/plan/stage_load.h"
#include "braid/plan/totals.h"
#include "braid/planners/amp_job.h"
#include "braid/planners/planner.h"
#include "braid/schedule/timeline.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using testing::pick;

struct Tiny {
  Graph graph;
  System system;
  Job job;
};

Tiny tiny(std::mt19937_64& random) {
  Tiny made{testing::tiny_graph(random, pick(random, 1, 6)),
            testing::tiny_system(random, 1 << pick(random, 0, 3),
                                 pick(random, 0, 1) == 0 ? 1e12 : 1e6 * pick(random, 1, 20)),
            {}};
  made.job.global_batch = 1L << pick(random, 0, 5);
  return made;
}

TEST(AmpPlanner, PlansFitAndNoBaselineBeatsIt) {
  std::mt19937_64 random(81);
  int planned = 0;
  for (int n = 0; n < 150; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const Outcome amp = plan_amp(made.job, made.system, {}, {});
    const Outcome braid = plan_braid(made.job, made.system, {}, {});
    if (amp.candidates.empty()) {
      EXPECT_EQ(amp.status, Status::infeasible);
      ASSERT_TRUE(amp.infeasibility.has_value());
      continue;
    }
    ++planned;
    const Candidate& best = amp.candidates.front();
    for (std::size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      EXPECT_LE(memory_of_stage(best.plan, stage).device_total(),
                usable_bytes(made.system.groups.front().chip) * (1 + 1e-12));
    }
    // AMP's plans are in braid's space, which braid searches to the end.
    ASSERT_FALSE(braid.candidates.empty());
    EXPECT_LE(braid.candidates.front().metrics.iteration_time_s,
              best.metrics.iteration_time_s * (1 + 1e-9));
    EXPECT_EQ(amp.status, Status::optimal);
    EXPECT_EQ(amp.search_bound_s, amp.objective);
    for (const auto plan : {plan_amp_sa, plan_random}) {
      const Outcome other = plan(made.job, made.system, {}, {}, {});
      if (other.candidates.empty()) continue;
      EXPECT_GE(other.objective, amp.objective * (1 - 1e-12)) << n;
      const Outcome again = plan(made.job, made.system, {}, {}, {});
      EXPECT_EQ(to_text(to_json(again.candidates.front().plan)),
                to_text(to_json(other.candidates.front().plan)));
    }
  }
  EXPECT_GT(planned, 60);
}

TEST(PhazePlanner, PlansFitAndItsObjectiveIsTheBestOfEveryDegree) {
  std::mt19937_64 random(84);
  int planned = 0;
  for (int n = 0; n < 100; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const Outcome phaze = plan_phaze(made.job, made.system, {}, {});
    const Outcome amp = plan_amp(made.job, made.system, {}, {});
    if (phaze.candidates.empty()) {
      EXPECT_EQ(phaze.status, Status::infeasible);
      EXPECT_TRUE(amp.candidates.empty());
      continue;
    }
    ++planned;
    const Candidate& best = phaze.candidates.front();
    for (std::size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      EXPECT_LE(memory_of_stage(best.plan, stage).device_total(),
                usable_bytes(made.system.groups.front().chip) * (1 + 1e-12));
    }
    // Each degree on its own is no better, and one of them is as good.
    double least_s = std::numeric_limits<double>::infinity();
    for (int pp = 1; pp <= 8; pp *= 2) {
      SpaceOptions space;
      space.pp = pp;
      if (pp > static_cast<int>(made.graph.layers.size()) || made.system.device_count % pp != 0) {
        continue;
      }
      const Outcome one = plan_phaze(made.job, made.system, space, {});
      if (!one.candidates.empty()) least_s = std::min(least_s, one.objective);
    }
    EXPECT_NEAR(least_s, phaze.objective, 1e-9 * least_s) << n;
  }
  EXPECT_GT(planned, 40);
}

/// AMP uses all devices there are, so that more of them is another problem.
TEST(AmpPlanner, MoreMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(85);
  int tight = 0, faster_s = 0;
  for (int n = 0; n < 200; ++n) {
    Tiny made = tiny(random);
    made.job.graph = &made.graph;
    const auto cost_s = [&](const System& system) {
      const Outcome outcome = plan_amp(made.job, system, {}, {});
      return outcome.candidates.empty() ? std::numeric_limits<double>::infinity()
                                        : outcome.objective;
    };
    const double before_s = cost_s(made.system);
    System larger = made.system;
    larger.groups.front().chip.memory.bytes *= 1.5;
    const double with_memory_s = cost_s(larger);
    EXPECT_LE(with_memory_s, before_s * (1 + 1e-9)) << n;
    tight += with_memory_s < before_s * (1 - 1e-9) ? 1 : 0;
    System faster = made.system;
    faster.groups.front().intra_node.bytes_per_s *= 2;
    faster.groups.front().intra_node.unit_bytes_per_s *= 2;
    for (NetworkLevel& level : faster.levels) {
      level.bytes_per_s *= 2;
      level.unit_bytes_per_s *= 2;
    }
    const double with_bandwidth_s = cost_s(faster);
    EXPECT_LE(with_bandwidth_s, before_s * (1 + 1e-9)) << n;
    faster_s += with_bandwidth_s < before_s * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(tight, 5);
  EXPECT_GT(faster_s, 50);
}

/// AMP's cost of a plan, from its profile and system alone.
double cost_of_plan(const Plan& plan) {
  const Parallelism& form = plan.parallel;
  double longest_s = 0, sum_s = 0, longest_sync_s = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    double stage_s = 0, parameters = 0;
    for (const std::int32_t layer : plan.stages[s].chunks.front().layers) {
      const LayerCost& cost = options_of(plan.profile, layer).front().cost;
      stage_s += cost.forward.total_s() + cost.backward_s();
      parameters += cost.dense_parameters + cost.expert_parameters;
    }
    longest_s = std::max(longest_s, stage_s);
    sum_s += stage_s;
    double slowest = std::numeric_limits<double>::infinity();
    for (int r = 0; r < form.dp; ++r) {
      const auto& devices = plan.stages[s].devices;
      const auto device = [&](int replica) {
        return devices[static_cast<std::size_t>(replica % form.dp * form.tp)];
      };
      slowest = std::min(slowest, link_bytes_per_s(plan.system, device(r), device(r + 1)));
    }
    if (form.dp > 1) {
      longest_sync_s =
          std::max(longest_sync_s, 2.0 * (form.dp - 1) / form.dp * parameters *
                                       bytes_per_element(plan.precision.gradient) / slowest);
    }
  }
  // Every layer of the tiny model puts out as much.
  const double output_bytes = plan.profile.edges.empty() ? 0 : plan.profile.edges.front().bytes;
  for (std::size_t cut = 1; cut < plan.stages.size(); ++cut) {
    const auto stage_of = [&](std::int32_t layer) {
      for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        const auto& layers = plan.stages[s].chunks.front().layers;
        if (std::find(layers.begin(), layers.end(), layer) != layers.end()) return s;
      }
      return plan.stages.size();
    };
    std::set<std::int32_t> crossing;
    for (const ProfileEdge& edge : plan.profile.edges) {
      if (stage_of(edge.source) < cut && cut <= stage_of(edge.target)) crossing.insert(edge.source);
    }
    const auto outputs = static_cast<double>(crossing.size());
    const double bytes = boundary_bytes({0, 0, outputs * output_bytes}, form);
    sum_s +=
        transfer_time_s(form, plan.system, static_cast<int>(cut) - 1, static_cast<int>(cut), bytes);
  }
  return static_cast<double>(form.num_micro_batches - 1) * longest_s + sum_s + longest_sync_s;
}

/// Least AMP cost of `plan` with its layers given to its stages in every way that fits.
double least_cost_s(Plan plan) {
  const std::size_t layers = plan.profile.layers.size(), stages = plan.stages.size();
  const double available = usable_bytes(plan.system.groups.front().chip);
  double best_s = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> stage_of(layers, 0);
  const std::function<void(std::size_t)> extend = [&](std::size_t layer) {
    if (layer < layers) {
      std::size_t first = 0;
      for (const ProfileEdge& edge : plan.profile.edges) {
        if (static_cast<std::size_t>(edge.target) != layer) continue;
        first = std::max(first, stage_of[static_cast<std::size_t>(edge.source)]);
      }
      for (stage_of[layer] = first; stage_of[layer] < stages; ++stage_of[layer]) extend(layer + 1);
      return;
    }
    for (Stage& stage : plan.stages) stage.chunks = {Chunk{}};
    for (std::size_t l = 0; l < layers; ++l) {
      Chunk& chunk = plan.stages[stage_of[l]].chunks.front();
      chunk.layers.push_back(static_cast<std::int32_t>(l));
      chunk.options.push_back(0);
    }
    for (std::size_t s = 0; s < stages; ++s) {
      const Chunk& chunk = plan.stages[s].chunks.front();
      if (chunk.layers.empty()) return;
      const ChunkTotals totals = totals_of(plan.profile, chunk);
      // As a line of stages needs; those that do not hand on to the next may need less.
      const std::int64_t in_flight = std::min<std::int64_t>(plan.parallel.num_micro_batches,
                                                            static_cast<std::int64_t>(stages - s));
      const DataParallelContext context = StageContext(plan, s).data_parallel();
      if (memory_of(std::span(&totals, 1), in_flight, context).device_total() > available) return;
    }
    best_s = std::min(best_s, cost_of_plan(plan));
  };
  extend(0);
  return best_s;
}

TEST(AmpPlanner, CutsBranchesInTheBestWayThereIs) {
  std::mt19937_64 random(86);
  int problems = 0, as_graph = 0, tight = 0;
  for (int n = 0; n < 60; ++n) {
    Tiny made = tiny(random);
    testing::add_branches(random, made.graph);
    made.job.graph = &made.graph;
    double all_bytes = 0;
    for (const Tensor& tensor : made.graph.tensors) {
      if (tensor.is_parameter) all_bytes += 10 * bytes_of(tensor);
    }
    const bool is_tight = pick(random, 0, 2) == 0;
    if (is_tight) made.system.groups.front().chip.memory.bytes = all_bytes * pick(random, 2, 8) / 8;
    SpaceOptions space;
    space.top = 1000;
    space.recompute = pick(random, 0, 1) == 0 ? Recompute::none : Recompute::full;
    const Outcome all = plan_amp(made.job, made.system, space, {});
    double best_s = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : all.candidates) {
      const double cost_s = cost_of_plan(candidate.plan);
      ASSERT_NEAR(cost_s, least_cost_s(candidate.plan), 1e-9 * cost_s) << n;
      ASSERT_TRUE(verify(candidate.plan).holds()) << n;
      best_s = std::min(best_s, cost_s);
      ++problems;
      for (const Stage& stage : candidate.plan.stages) {
        const auto& layers = stage.chunks.front().layers;
        if (layers.back() - layers.front() + 1 == static_cast<int>(layers.size())) continue;
        ++as_graph;
        break;
      }
    }
    tight += is_tight && all.candidates.empty() ? 1 : 0;
    space.top = 1;
    const Outcome one = plan_amp(made.job, made.system, space, {});
    ASSERT_EQ(one.candidates.empty(), all.candidates.empty()) << n;
    if (one.candidates.empty()) continue;
    ASSERT_NEAR(one.objective, best_s, 1e-9 * best_s) << n;
    EXPECT_EQ(one.status, Status::optimal);
    for (const auto plan : {plan_amp_sa, plan_random}) {
      const Outcome other = plan(made.job, made.system, space, {}, {});
      if (!other.candidates.empty()) {
        EXPECT_GE(other.objective, one.objective * (1 - 1e-12)) << n;
      }
    }
  }
  EXPECT_GT(problems, 400);
  EXPECT_GT(as_graph, 20);
  EXPECT_GT(tight, 1);
}

TEST(AmpPlanner, KeepsToTheRestrictionsGiven) {
  std::mt19937_64 random(82);
  const Graph graph = testing::tiny_graph(random, 6);
  System system = testing::tiny_system(random, 8, 1e12);
  Job job;
  job.graph = &graph;
  job.global_batch = 16;
  SpaceOptions space;
  space.pp = 4;
  space.micro_batch = 2;
  space.top = 3;
  const Outcome outcome = plan_amp(job, system, space, {});
  ASSERT_FALSE(outcome.candidates.empty());
  EXPECT_LE(outcome.candidates.size(), 3U);
  for (const Candidate& candidate : outcome.candidates) {
    EXPECT_EQ(candidate.plan.parallel.pp, 4);
    EXPECT_EQ(candidate.plan.parallel.micro_batch, 2);
    EXPECT_EQ(candidate.plan.planner, "amp");
  }
  space = {};
  space.vp = 2;
  EXPECT_THROW(plan_amp(job, system, space, {}), Error);
  system.groups.push_back(system.groups.front());
  EXPECT_THROW(plan_amp(job, system, {}, {}), Error);
}

TEST(AmpPlanner, StopsWhenTheBudgetIsSpent) {
  std::mt19937_64 random(83);
  const Graph graph = testing::tiny_graph(random, 4);
  const System system = testing::tiny_system(random, 8, 1e12);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  for (const auto plan : {plan_amp, plan_amp_sa, plan_random}) {
    EXPECT_LE(plan(job, system, {}, {.work = 3}, {}).work, 3);
  }
  const System full = testing::tiny_system(random, 8, 1);
  EXPECT_EQ(plan_random(job, full, {}, {.work = 3}, {}).status, Status::budget_exhausted);
  EXPECT_EQ(plan_amp(job, full, {}, {}, {}).status, Status::infeasible);
}

}  // namespace
}  // namespace braid
