#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/base/rounding.h"
#include "braid/frontend/model.h"
#include "braid/plan/excluded_forms.h"
#include "braid/plan/names.h"
#include "braid/plan/plan_json.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/job/assess.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/planners/registry.h"
#include "braid/planners/trainer_choice.h"
#include "braid/planners/uniform/uniform_planner.h"
#include "braid/profile/trainer_behaviour.h"
#include "braid/schedule/timeline.h"

#include "planners/every_plan.h"
#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;

/// What users tell plans apart by: degrees, recomputation, offload, sharded parameters or not.
using PlanClass = std::vector<int>;

PlanClass class_of_plan(const Parallelism& p) {
  return {p.tp,
          p.cp,
          p.ep,
          p.whole_experts ? 1 : 0,
          p.pp,
          p.dp,
          static_cast<int>(p.recompute),
          p.zero == Zero::parameters ? 1 : 0,
          p.offload_optimizer ? 1 : 0,
          p.offload_weights ? 1 : 0,
          p.offload_activations ? 1 : 0};
}

/// Least simulated times over every configuration, with every trade of time for memory; each plan
/// built whole and timed by the simulator.
struct EveryConfiguration {
  /// The same of each way to run the job; see class_of_plan().
  std::map<PlanClass, double> tried_by_class, any_by_class;
  /// Over every assignment of layers under 1F1B, and those that are tried under other schedules.
  double tried_s = kInfinity;
  double any_s = kInfinity;  ///< Over every assignment of layers.
};

EveryConfiguration brute_force(const Job& job, const System& system, const SpaceOptions& space) {
  EveryConfiguration best;
  test::each_plan(job, system, space, [&](const test::EveryPlan& every) {
    best.any_s = std::min(best.any_s, every.time_s);
    const auto lower = [&](std::map<PlanClass, double>& by_class) {
      double& known_s =
          by_class.try_emplace(class_of_plan(every.plan.parallel), kInfinity).first->second;
      known_s = std::min(known_s, every.time_s);
    };
    lower(best.any_by_class);
    if (!every.tried) return;
    best.tried_s = std::min(best.tried_s, every.time_s);
    lower(best.tried_by_class);
  });
  return best;
}

/// With what came nearest to fitting needs, something fits. Whether with less than that more of
/// either memory nothing does: of 1F1B, a few assignments of layers are tried for what they lack.
bool is_nearest(const Job& job, const System& system, const SpaceOptions& space,
                const Infeasibility& why, const std::string& what) {
  EXPECT_GT(missing_bytes(why), 0) << what;
  System larger = system;
  Chip& chip = larger.groups.front().chip;
  const double more_bytes = 0.999 * missing_bytes(why);
  chip.memory.bytes += more_bytes;
  bool nearest = plan_braid(job, larger, space, {}, {}).status == Status::infeasible;
  if (chip.host) {
    chip.memory.bytes -= more_bytes;
    chip.host->bytes += more_bytes;
    nearest = nearest && plan_braid(job, larger, space, {}, {}).status == Status::infeasible;
    chip.host->bytes = std::max(chip.host->bytes, 1.001 * why.host_needed_bytes);
  }
  chip.memory.bytes = std::max(chip.memory.bytes, 1.001 * why.needed_bytes);
  EXPECT_FALSE(plan_braid(job, larger, space, {}, {}).candidates.empty()) << what;
  return nearest;
}

/// Whether an outcome is what brute force says.
void expect_agrees(const Outcome& outcome, const EveryConfiguration& best,
                   const std::string& what) {
  ASSERT_EQ(outcome.candidates.empty(), best.tried_s == kInfinity) << what;
  if (outcome.candidates.empty()) return;
  EXPECT_LE(outcome.search_bound_s, best.tried_s * (1 + 1e-9)) << what;
  EXPECT_GE(outcome.objective, best.any_s * (1 - 1e-9)) << what;
  EXPECT_LE(outcome.physical_bound.time_s, outcome.objective * (1 + 1e-9)) << what;
  // Of assignments that the space leaves out nothing is promised but a bound.
  const bool leaves_out = outcome.assignments_bound_s > 0;
  EXPECT_LE(leaves_out ? outcome.assignments_bound_s : outcome.search_bound_s,
            best.any_s * (1 + 1e-9))
      << what;
  if (outcome.status != Status::optimal) return;
  EXPECT_LE(outcome.objective, best.tried_s * (1 + 1e-9)) << what;
}

// The k-th plan is no slower than the k-th best of the bests of all classes, and no faster than any
// plan of its own class.
TEST(BraidPlanner, ShowsTheBestOfEachOfTheBestClasses) {
  std::mt19937_64 random(271);
  std::int64_t shown = 0, traded = 0;
  for (int trial = 0; trial < 250; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 1, 4));
    if (trial % 3 == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
    const double memory_bytes = pick(random, 0, 3) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    const System system = test::tiny_system(random, pick(random, 1, 4), memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 6);
    SpaceOptions space;
    space.allow_offload = trial % 2 == 0;
    space.all_devices = trial % 4 != 0;
    space.top = pick(random, 2, 12);
    const EveryConfiguration every = brute_force(job, system, space);
    std::vector<double> times_s;
    for (const auto& [plan_class, time_s] : every.tried_by_class) times_s.push_back(time_s);
    std::sort(times_s.begin(), times_s.end());
    for (const bool exhaustive : {false, true}) {
      if (exhaustive && !space.all_devices) continue;
      const Outcome outcome = exhaustive ? plan_exhaustively(job, system, space, {})
                                         : plan_braid(job, system, space, {}, {});
      const std::string what = "trial " + std::to_string(trial) + (exhaustive ? " walk" : "");
      ASSERT_EQ(outcome.candidates.size(),
                std::min(times_s.size(), static_cast<std::size_t>(space.top)))
          << what;
      std::set<PlanClass> classes;
      for (std::size_t k = 0; k < outcome.candidates.size(); ++k) {
        const Candidate& candidate = outcome.candidates[k];
        const PlanClass plan_class = class_of_plan(candidate.plan.parallel);
        EXPECT_TRUE(classes.insert(plan_class).second) << what << " plan " << k;
        const double time_s = candidate.metrics.iteration_time_s;
        EXPECT_LE(time_s, times_s[k] * (1 + 1e-9)) << what << " plan " << k;
        EXPECT_GE(time_s, every.any_by_class.at(plan_class) * (1 - 1e-9)) << what << " plan " << k;
        ++shown;
        traded += candidate.plan.parallel.recompute != Recompute::none ? 1 : 0;
      }
    }
  }
  EXPECT_GT(shown, 800);
  EXPECT_GT(traded, 100);
}

// Layers that differ, so that under interleaving there is much to move between chunks.
TEST(BraidPlanner, PutsTheSamePlanFirstHoweverManyAreShown) {
  std::mt19937_64 random(17);
  int shown = 0, kept_out = 0;
  for (int trial = 0; trial < 40; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 6, 14));
    const int devices = pick(random, 2, 8);
    const System system = test::tiny_system(random, devices, 1e6 * pick(random, 1, 40));
    Job job;
    job.graph = &graph;
    job.global_batch = 4 * pick(random, 1, 6);
    BraidSpace space;
    space.pp = pick(random, 2, std::min(4, devices));
    space.preference = trial % 2 == 0 ? Preference::fastest : Preference::easiest;
    const Outcome one = plan_braid(job, system, space, {}, {});
    for (const int top : {2, 3, 8}) {
      space.top = top;
      const Outcome outcome = plan_braid(job, system, space, {}, {});
      ASSERT_EQ(outcome.candidates.empty(), one.candidates.empty()) << trial;
      EXPECT_EQ(outcome.status, one.status) << trial;
      EXPECT_EQ(outcome.search_bound_s, one.search_bound_s) << trial;
      if (one.candidates.empty()) break;
      EXPECT_EQ(to_text(to_json(outcome.candidates.front().plan)),
                to_text(to_json(one.candidates.front().plan)))
          << trial << " top " << top;
      EXPECT_EQ(to_text(to_json(fastest_of(outcome).plan)), to_text(to_json(fastest_of(one).plan)))
          << trial << " top " << top;
      for (const Candidate& candidate : outcome.candidates) {
        EXPECT_GE(candidate.metrics.iteration_time_s,
                  fastest_of(one).metrics.iteration_time_s * (1 - 1e-12))
            << trial;
      }
      shown += static_cast<int>(outcome.candidates.size());
      kept_out += outcome.candidates.size() < static_cast<std::size_t>(top) ? 1 : 0;
    }
  }
  EXPECT_GT(shown, 100);
  EXPECT_LT(kept_out, 60);
}

TEST(BraidPlanner, AgreesWithExhaustiveSearch) {
  std::mt19937_64 random(314);
  int optimal = 0;
  int feasible = 0;
  int infeasible = 0, short_of_memory = 0, nearest = 0;
  for (int trial = 0; trial < 1200; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 1, 5));
    if (trial % 3 == 0) test::tie_layers(graph, 0, graph.layers.size() - 1);
    const int devices = pick(random, 1, 4);
    const double memory_bytes = pick(random, 0, 3) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    const System system = test::tiny_system(random, devices, memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    SpaceOptions space;
    if (pick(random, 0, 2) > 0) space.allow_offload = false;
    space.all_devices = trial % 4 != 0;
    if (trial % 40 == 0) job.sharding = ShardingSource::automatic;
    const Outcome outcome = plan_braid(job, system, space, {}, {});
    expect_agrees(outcome, brute_force(job, system, space), "trial " + std::to_string(trial));
    if (outcome.candidates.empty()) {
      ++infeasible;
      ASSERT_EQ(outcome.status, Status::infeasible);
      if (outcome.infeasibility->stage < 0) continue;
      ++short_of_memory;
      const bool is_least =
          is_nearest(job, system, space, *outcome.infeasibility, "trial " + std::to_string(trial));
      nearest += is_least ? 1 : 0;
      continue;
    }
    ++feasible;
    // The plan is real: the simulator gives its time.
    ASSERT_DOUBLE_EQ(simulate_time_s(outcome.candidates[0].plan), outcome.objective);
    optimal += outcome.status == Status::optimal ? 1 : 0;
  }
  EXPECT_GT(infeasible, 50);
  EXPECT_GT(short_of_memory, 50);
  EXPECT_GE(nearest, short_of_memory * 9 / 10);
  EXPECT_GT(optimal, feasible / 2);
}

/// A model with experts, whole ones better than sharded ones where messages are slow.
Graph expert_graph(int layers) {
  ModelOptions options;
  options.seq_len = 64;
  options.layers = layers;
  return load_model("mixtral-8x7b", options);
}

TEST(BraidPlanner, AgreesWithExhaustiveSearchOnExperts) {
  std::mt19937_64 random(1618);
  const Graph graph = expert_graph(1);
  int optimal = 0, whole = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const int devices = 1 << pick(random, 1, 3);
    const double memory_bytes = pick(random, 0, 2) == 0 ? 1e13 : 1e10 * pick(random, 1, 9);
    const System system = test::tiny_system(random, devices, memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 2) * 2;
    SpaceOptions space;
    space.allow_offload = false;
    space.cp = Degrees({}, 2);
    const Outcome outcome = plan_braid(job, system, space, {}, {});
    expect_agrees(outcome, brute_force(job, system, space), "trial " + std::to_string(trial));
    if (outcome.candidates.empty()) continue;
    optimal += outcome.status == Status::optimal ? 1 : 0;
    whole += outcome.candidates[0].plan.parallel.whole_experts ? 1 : 0;
  }
  EXPECT_GT(optimal, 5);
  EXPECT_GT(whole, 0);
}

TEST(BraidPlanner, AgreesWithExhaustiveSearchOnDataflowChips) {
  std::mt19937_64 random(2236);
  int optimal = 0, infeasible = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 4));
    System system = test::tiny_system(random, pick(random, 1, 4),
                                      trial % 2 == 0 ? 1e5 * pick(random, 5, 40) : 1e12);
    Chip& chip = system.groups.front().chip;
    chip.execution = ChipExecution::dataflow;
    chip.on_chip = Memory{"SRAM", 1e3 * pick(random, 1, 300), 1e13};
    chip.efficiency.tile_m = chip.efficiency.tile_n = 16;
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    const Outcome outcome = plan_braid(job, system, {}, {}, {});
    expect_agrees(outcome, brute_force(job, system, {}), "trial " + std::to_string(trial));
    optimal += outcome.status == Status::optimal ? 1 : 0;
    infeasible += outcome.candidates.empty() ? 1 : 0;
  }
  EXPECT_GT(infeasible, 5);
  EXPECT_LT(infeasible, 25);
  EXPECT_GT(optimal, 15);
}

/// Lets some layers read the model's input instead of the layer before, and the last one all that
/// nothing else reads.
void branch_out(std::mt19937_64& random, Graph& graph) {
  const auto tensor_before = [&](std::size_t layer) -> TensorId& {
    return graph.operators[static_cast<std::size_t>(graph.layers[layer].first)].inputs.front();
  };
  std::vector<TensorId> loose;
  for (std::size_t l = 1; l + 1 < graph.layers.size(); ++l) {
    if (pick(random, 0, 1) == 0) continue;
    loose.push_back(tensor_before(l));
    tensor_before(l) = graph.inputs.front();
  }
  Operator& last = graph.operators[static_cast<std::size_t>(graph.layers.back().last - 1)];
  for (const TensorId tensor : loose) {
    if (tensor != graph.inputs.front()) last.inputs.push_back(tensor);
  }
  find_repeated_layers(graph);
}

TEST(BraidPlanner, AgreesWithExhaustiveSearchOnBranches) {
  std::mt19937_64 random(1618);
  int optimal = 0;
  int branched = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Graph graph = test::tiny_graph(random, pick(random, 3, 6));
    branch_out(random, graph);
    const System system = test::tiny_system(random, pick(random, 2, 5), 1e12);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    SpaceOptions space;
    space.allow_offload = false;
    space.all_devices = trial % 2 != 0;
    if (chain_job(job, system).branched) ++branched;
    const Outcome outcome = plan_braid(job, system, space, {}, {});
    expect_agrees(outcome, brute_force(job, system, space), "trial " + std::to_string(trial));
    if (outcome.candidates.empty()) continue;
    ASSERT_DOUBLE_EQ(simulate_time_s(outcome.candidates[0].plan), outcome.objective);
    optimal += outcome.status == Status::optimal ? 1 : 0;
    space.all_devices = true;
    expect_agrees(plan_exhaustively(job, system, space, {}, {}), brute_force(job, system, space),
                  "walked, trial " + std::to_string(trial));
  }
  EXPECT_GT(branched, 50);
  EXPECT_GT(optimal, 50);
}

TEST(BraidPlanner, OffloadWithinTheHostsMemoryAgreesWithExhaustiveSearch) {
  std::mt19937_64 random(2718);
  int offloaded = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 4));
    System system = test::tiny_system(random, pick(random, 1, 4), 1e5 * pick(random, 2, 20));
    system.groups[0].chip.host =
        Memory{"host", 1e5 * pick(random, 1, 30), 1e7 * pick(random, 1, 300)};
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 6);
    const Outcome outcome = plan_braid(job, system, {}, {}, {});
    expect_agrees(outcome, brute_force(job, system, {}), "trial " + std::to_string(trial));
    if (outcome.candidates.empty()) continue;
    double host = 0;
    const Plan& plan = outcome.candidates[0].plan;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      host = std::max(host, memory_of_stages(plan)[s].host);
    }
    EXPECT_LE(host, system.groups[0].chip.host->bytes);
    offloaded += host > 0 ? 1 : 0;
  }
  EXPECT_GT(offloaded, 8);
}

TEST(BraidPlanner, LosesNothingToTheExhaustivePlanner) {
  std::mt19937_64 random(2718);
  int feasible = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 10));
    const double memory_bytes = pick(random, 0, 3) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    const System system = test::tiny_system(random, 1 << pick(random, 0, 3), memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 16);
    SpaceOptions space;
    space.all_devices = true;
    const Outcome found = plan_braid(job, system, space, {}, {});
    const Outcome all = plan_exhaustively(job, system, space, {}, {});
    ASSERT_EQ(found.candidates.empty(), all.candidates.empty()) << "trial " << trial;
    EXPECT_LE(found.evaluated, all.evaluated);
    if (found.candidates.empty()) {
      EXPECT_EQ(all.status, Status::infeasible);
      continue;
    }
    ++feasible;
    // Its changes start from more plans.
    ASSERT_LE(found.objective, all.objective * kAboveTolerance) << "trial " << trial;
    if (found.status == Status::optimal && found.assignments_bound_s == 0) {
      ASSERT_GE(found.objective, all.objective * kBelowTolerance) << "trial " << trial;
    }
    EXPECT_LE(all.search_bound_s, all.objective);
  }
  EXPECT_GT(feasible, 200);
}

/// The stages of a random set, or all.
std::vector<Zero> random_stages(std::mt19937_64& random, const std::vector<Zero>& of) {
  std::vector<Zero> stages;
  for (const Zero zero : of) {
    if (pick(random, 0, 1) == 1) stages.push_back(zero);
  }
  return stages.empty() ? of : stages;
}

// A trainer without the first stages of ZeRO gains by its least one what others gain by theirs.
TEST(BraidPlanner, LosesNothingWhateverStagesOfZeroATrainerHas) {
  std::mt19937_64 random(1919);
  int held = 0, sharded = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 5));
    const double memory_bytes = pick(random, 0, 2) == 0 ? 1e12 : 1e5 * pick(random, 5, 90);
    const System system = test::tiny_system(random, 1 << pick(random, 0, 3), memory_bytes);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 16);
    job.trainer.does.fused_accumulation = trial % 2 == 0;
    SpaceOptions space;
    space.all_devices = true;
    space.can.zero =
        random_stages(random, {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters});
    space.can.pipelined_zero = random_stages(random, space.can.zero);
    if (trial % 3 == 0) {
      space.can.never.push_back(
          {.with = traits(FormTrait::data_parallel, FormTrait::zero_0, FormTrait::tensor_parallel),
           .without = 0,
           .models = ""});
    }
    const Outcome found = plan_braid(job, system, space, {}, {});
    const Outcome all = plan_exhaustively(job, system, space, {}, {});
    ASSERT_EQ(found.candidates.empty(), all.candidates.empty()) << "trial " << trial;
    if (found.candidates.empty()) continue;
    ++held;
    sharded += found.candidates.front().plan.parallel.zero != Zero::none ? 1 : 0;
    EXPECT_LE(found.objective, all.objective * (1 + 1e-9)) << "trial " << trial;
  }
  EXPECT_GT(held, 200);
  EXPECT_GT(sharded, 50);
}

TEST(BraidPlanner, MoreMemoryNeverHurts) {
  std::mt19937_64 random(99);
  for (int trial = 0; trial < 300; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 5));
    System system = test::tiny_system(random, pick(random, 1, 4), 1e6);
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    const Outcome tight = plan_braid(job, system, {}, {}, {});
    system.groups[0].chip.memory.bytes = 1e7;
    const Outcome roomy = plan_braid(job, system, {}, {}, {});
    if (tight.candidates.empty()) continue;
    ASSERT_FALSE(roomy.candidates.empty());
    EXPECT_LE(roomy.search_bound_s, tight.objective * (1 + 1e-9)) << "trial " << trial;
  }
}

TEST(BraidPlanner, OneMoreDeviceNeverHurts) {
  std::mt19937_64 random(127);
  int compared = 0;
  int idle = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 5));
    // On one node, or on nodes of two, where groups of three reach over edges.
    System system = test::tiny_system(random, 7, 1e5 * pick(random, 5, 200));
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 12);
    double before_s = std::numeric_limits<double>::infinity();
    for (system.device_count = 1; system.device_count <= 7; ++system.device_count) {
      const Outcome outcome = plan_braid(job, system, {}, {}, {});
      if (before_s < std::numeric_limits<double>::infinity()) {
        ASSERT_FALSE(outcome.candidates.empty());
        EXPECT_LE(outcome.search_bound_s, before_s * (1 + 1e-9)) << "trial " << trial;
        ++compared;
      }
      if (outcome.candidates.empty()) continue;
      before_s = outcome.objective;
      const std::int64_t used = devices_used(outcome.candidates[0].plan);
      ASSERT_LE(used, system.device_count);
      idle += used < system.device_count ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(idle, 50);
}

TEST(BraidPlanner, SameBytesAtAnyThreadCount) {
  std::mt19937_64 random(5);
  const Graph graph = test::tiny_graph(random, 5);
  const System system = test::tiny_system(random, 4, 1e8);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  SpaceOptions space;
  space.top = 5;
  std::set<std::string> texts;
  const int before = thread_count();
  for (const int threads : {1, 2, 8}) {
    set_thread_count(threads);
    std::string text;
    for (const Candidate& candidate : plan_braid(job, system, space, {}, {}).candidates) {
      text += to_text(to_json(candidate.plan));
    }
    texts.insert(text);
  }
  set_thread_count(before);
  EXPECT_EQ(texts.size(), 1u);
}

TEST(BraidPlanner, OneByteShortIsInfeasibleWithTheFigures) {
  std::mt19937_64 random(21);
  const Graph graph = test::tiny_graph(random, 1);
  System system = test::tiny_system(random, 1, 1e9);
  system.groups[0].chip.host.reset();
  Job job;
  job.graph = &graph;
  SpaceOptions space;
  space.recompute = Recompute::full;
  space.zero = Zero::none;
  const Outcome roomy = plan_braid(job, system, space, {}, {});
  ASSERT_EQ(roomy.status, Status::optimal);
  const double needed = roomy.candidates[0].metrics.peak_memory_bytes;
  system.groups[0].chip.memory.bytes = needed;
  EXPECT_EQ(plan_braid(job, system, space, {}, {}).status, Status::optimal);
  system.groups[0].chip.memory.bytes = needed - 1;
  const Outcome tight = plan_braid(job, system, space, {}, {});
  ASSERT_EQ(tight.status, Status::infeasible);
  ASSERT_TRUE(tight.infeasibility);
  EXPECT_EQ(tight.infeasibility->stage, 0);
  EXPECT_DOUBLE_EQ(tight.infeasibility->needed_bytes, needed);
  EXPECT_DOUBLE_EQ(tight.infeasibility->available_bytes, needed - 1);
}

TEST(BraidPlanner, RefusesRestrictionsThatCannotHold) {
  std::mt19937_64 random(8);
  const Graph graph = test::tiny_graph(random, 3);
  const System system = test::tiny_system(random, 4, 1e9);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  const auto refused = [&](const std::function<void(SpaceOptions&)>& restrict) {
    SpaceOptions space;
    restrict(space);
    try {
      plan_braid(job, system, space, {}, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused([](SpaceOptions& s) { s.pp = 4; }).find("layers"), std::string::npos);
  EXPECT_NE(refused([](SpaceOptions& s) {
              s.dp = 3;
              s.all_devices = true;
            }).find("3 does not divide 4 devices"),
            std::string::npos);
  EXPECT_NE(refused([](SpaceOptions& s) { s.dp = 5; }).find("5 is more than the 4 devices"),
            std::string::npos);
  EXPECT_NE(refused([](SpaceOptions& s) { s.micro_batch = 3; }).find("global batch"),
            std::string::npos);
  EXPECT_NE(
      refused([](SpaceOptions& s) { s.pp = s.dp = 3; }).find("multiply to 9, more than the 4"),
      std::string::npos);
  EXPECT_NE(refused([](SpaceOptions& s) { s.tp = 0; }).find("--tp"), std::string::npos);
  job.global_batch = 6;
  EXPECT_NE(refused([](SpaceOptions& s) { s.dp = 4; }).find("global batch"), std::string::npos);
}

TEST(BraidPlanner, BudgetIsKeptAndReported) {
  std::mt19937_64 random(77);
  const Graph graph = test::tiny_graph(random, 5);
  const System system = test::tiny_system(random, 4, 1e9);
  Job job;
  job.graph = &graph;
  job.global_batch = 8;
  const Outcome whole = plan_braid(job, system, {}, {}, {});
  const Outcome cut = plan_braid(job, system, {}, Budget{1}, {});
  EXPECT_LE(cut.evaluated, 1);
  EXPECT_NE(cut.status, Status::optimal);
  if (!cut.candidates.empty()) {
    EXPECT_GE(cut.objective, whole.objective);
    EXPECT_LE(cut.search_bound_s, whole.objective);
  }
}

// Where ZeRO-1 alone was looked at whether memory asks for it or not, another stage, given by name,
// found plans 2 to 39 % faster: trainers may lack ZeRO-1, and in pipelines ZeRO-2 hides more.
TEST(BraidPlanner, NoStageOfZeroFindsAnythingFaster) {
  for (const auto& [model, cluster, trainer, batch, length] :
       {std::tuple{"vit-large", "gh200-quad:4", "accelerate", 12, 0},
        {"qwen3-30b-a3b", "tpu-v6e-pod:32", "maxtext", 8, 4096},
        {"gemma-3-1b", "p4d.24xlarge:24", "accelerate", 12, 4096},
        {"bert-large", "gh200-quad:16", "ideal", 32, 512}}) {
    const System system = load_system(cluster);
    ModelOptions options;
    options.seq_len = length;
    Graph graph = load_model(model, options);
    Job job;
    job.graph = &graph;
    job.global_batch = batch;
    SpaceOptions space;
    set_trainer(load_trainer(trainer), system, job, space);
    adapt_graph(job.trainer.does, graph);
    const double all_s = plan_braid(job, system, space, {}, {}).objective;
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}) {
      SpaceOptions limited = space;
      limited.zero = zero;
      if (!space.can.allows(zero, 1)) continue;
      const Outcome found = plan_braid(job, system, limited, {}, {});
      if (found.candidates.empty()) continue;
      EXPECT_GE(found.objective, all_s * kBelowTolerance) << model << ", " << name_of(zero);
    }
  }
}

// With interleaved layers dealt in fewer ways, or layers moved in fewer plans, a tighter limit
// found plans 0.07 to 4.4 % faster.
TEST(BraidPlanner, TighterLimitsFindNothingFaster) {
  for (const auto& [model, cluster, batch, length] :
       {std::tuple{"qwen3-30b-a3b", "dgx-h100:64", 512, 4096},
        {"qwen3-30b-a3b", "dgx-h100:64", 256, 4096},
        {"gpt-neox-20b", "dgx-h100:64", 256, 2048},
        {"nemotron-h-56b", "dgx-h100:64", 512, 4096},
        {"gpt2-xl", "a100-pcie-server:32", 30, 1024},
        {"nemotron-h-8b", "g5.48xlarge:24", 96, 4096},
        {"qwen3-30b-a3b", "g5.48xlarge:64", 64, 4096}}) {
    const System system = load_system(cluster);
    ModelOptions options;
    options.seq_len = length;
    Graph graph = load_model(model, options);
    Job job;
    job.graph = &graph;
    job.global_batch = batch;
    SpaceOptions space;
    set_trainer(load_trainer("megatron"), system, job, space);
    adapt_graph(job.trainer.does, graph);
    const auto least_s = [&](const SpaceOptions& limited) {
      const Outcome found = plan_braid(job, system, limited, {}, {});
      return found.candidates.empty() ? kInfinity : found.objective;
    };
    SpaceOptions narrow = space, small = space, whole = space, deep = space, kept = space,
                 twice = space;
    narrow.tp = Degrees({}, 1);
    small.micro_batch = Degrees({}, 3);
    whole.whole_experts = false;
    deep.dp = Degrees({}, 4);
    kept.recompute = Recompute::none;
    twice.vp = 2;
    const double all_s = least_s(space);
    ASSERT_LT(all_s, kInfinity) << model;
    for (const SpaceOptions* limited : {&narrow, &small, &whole, &deep, &kept, &twice}) {
      EXPECT_GE(least_s(*limited), all_s * kBelowTolerance) << model << ", " << batch;
    }
  }
}

TEST(MegatronPlanner, NeverBeatsTheLargerSpace) {
  std::mt19937_64 random(404);
  int compared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Graph graph = test::tiny_graph(random, pick(random, 1, 5));
    const System system = test::tiny_system(random, pick(random, 1, 4), 1e5 * pick(random, 5, 200));
    Job job;
    job.graph = &graph;
    job.global_batch = pick(random, 1, 8);
    const Outcome rule = plan_megatron(job, system, {}, {}, {});
    if (rule.candidates.empty()) continue;
    ++compared;
    const Outcome bare = plan_megatron_rule(job, system, {}, {}, {});
    if (!bare.candidates.empty()) {
      EXPECT_LE(rule.objective, bare.objective * (1 + 1e-9)) << "trial " << trial;
    }
    const Outcome best = plan_braid(job, system, {}, {}, {});
    ASSERT_FALSE(best.candidates.empty()) << "trial " << trial;
    EXPECT_LE(best.search_bound_s, rule.objective * (1 + 1e-9)) << "trial " << trial;
  }
  EXPECT_GT(compared, 100);
}

TEST(MegatronPlanner, SplitsExpertsAndLeavesRecomputationOutWhereThatIsFaster) {
  ModelOptions options;
  options.seq_len = 2048;
  const Graph graph = load_model("mixtral-8x7b", options);
  const System system = load_system("dgx-h100:64");
  Job job;
  job.graph = &graph;
  job.global_batch = 256;
  const Outcome chosen = plan_megatron(job, system, {}, {}, {});
  const Outcome bare = plan_megatron_rule(job, system, {}, {}, {});
  ASSERT_FALSE(chosen.candidates.empty());
  ASSERT_FALSE(bare.candidates.empty());
  EXPECT_EQ(bare.candidates[0].plan.parallel.ep, 1);
  EXPECT_EQ(bare.candidates[0].plan.parallel.recompute, Recompute::full);
  EXPECT_GT(chosen.candidates[0].plan.parallel.ep, 1);
  EXPECT_NE(chosen.candidates[0].plan.parallel.recompute, Recompute::full);
  EXPECT_LT(chosen.objective, bare.objective);
}

TEST(BraidPlanner, OneStageKeepsTiedEmbeddingsOnce) {
  const Graph graph = load_model("gpt2", {});
  Job job;
  job.graph = &graph;
  job.global_batch = 4;
  const auto parameters = static_cast<double>(parameter_count(graph));
  for (const PlanFunction& planner :
       std::initializer_list<PlanFunction>{plan_braid, plan_exhaustively}) {
    SpaceOptions space;
    space.pp = 1;
    const Outcome one = planner(job, load_system("dgx-a100:1"), space, {}, {});
    ASSERT_EQ(one.status, Status::optimal);
    EXPECT_DOUBLE_EQ(memory_of_stages(one.candidates[0].plan)[0].weights, 2 * parameters);
    // Two stages keep a copy each.
    space.pp = 2;
    const Outcome two = planner(job, load_system("dgx-a100:2"), space, {}, {});
    ASSERT_FALSE(two.candidates.empty());
    const Plan& plan = two.candidates[0].plan;
    EXPECT_DOUBLE_EQ(memory_of_stages(plan)[0].weights + memory_of_stages(plan)[1].weights,
                     2 * (parameters + 50257.0 * 768));
  }
}

}  // namespace
}  // namespace braid
