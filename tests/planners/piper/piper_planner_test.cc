#include "braid/planners/piper/piper_planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/piper/network.h"
#include "braid/planners/piper/variants.h"
#include "braid/profile/split_limits.h"
#include "braid/verify/verify.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

/// Piper's time per sample of a plan, from the definition.
double time_per_sample(const Plan& plan, double bandwidth) {
  double slowest = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const Parallelism p = form_of(plan, s);
    const auto batch = static_cast<double>(plan.global_batch / p.micro_batch);
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
    const double stage_time = (time + border_bytes / bandwidth) / d +
                              4 * (d - 1) / d * gradient_bytes / batch / bandwidth;
    slowest = std::max(slowest, stage_time / p.micro_batch);
  }
  return slowest;
}

double flat_bandwidth(const System& system) {
  return system.levels.empty() ? system.groups.front().intra_node.bytes_per_s
                               : system.levels.back().bytes_per_s;
}

struct PiperInstance {
  Graph graph;
  System system;
  Job job;
};

void make(std::mt19937_64& random, double memory_bytes, PiperInstance& instance) {
  instance.graph = test::tiny_graph(random, test::pick(random, 1, 5));
  instance.system = test::tiny_system(random, test::pick(random, 1, 6), memory_bytes);
  instance.job.graph = &instance.graph;
  instance.job.global_batch = test::pick(random, 1, 8);
}

/// What the stages of a chain are of.
struct ChainLimits {
  int layers = 0, most_tp = 0;
  std::int64_t all_batches = 0;
};

/// Least of the slowest stage over every cut of what is left of the chain and every degree of each
/// stage, memory ignored; `cost(first, last, tp, dp)` is a stage's time per sample.
template <typename Cost>
double least_slowest(const ChainLimits& chain, int first, int devices, int batches,
                     const Cost& cost) {
  if (first == chain.layers) return 0;
  double best = kInfinity;
  for (int last = first + 1; last <= chain.layers; ++last) {
    for (int tp = 1; tp <= chain.most_tp; ++tp) {
      for (int dp = 1; dp * tp <= devices && dp <= batches; ++dp) {
        if (chain.all_batches % dp != 0) continue;
        const double here = cost(first, last, tp, dp);
        if (here >= best) continue;
        const double behind = least_slowest(chain, last, devices - dp * tp, batches - dp, cost);
        best = std::min(best, std::max(here, behind));
      }
    }
  }
  return best;
}

/// Least time per sample over every form of each stage and every cut of the chain, memory ignored.
double exhaustive(const PiperInstance& instance) {
  LayerTables tables(instance.job, instance.system);
  const SplitLimits split = split_limits(instance.graph);
  const auto layers = static_cast<int>(instance.graph.layers.size());
  const auto devices = static_cast<int>(instance.system.device_count);
  const double bandwidth = flat_bandwidth(instance.system);
  double best = kInfinity;
  for (int micro_batch = 1; micro_batch <= 16; micro_batch *= 2) {
    if (instance.job.global_batch % micro_batch != 0) continue;
    const std::int64_t batches = instance.job.global_batch / micro_batch;
    const auto cost = [&](int first, int last, int tp, int dp) {
      Configuration form;
      form.tp = tp;
      form.micro_batch = micro_batch;
      form.sequence_parallel = tp > 1;
      if (!refusal(split, to_execution(form)).empty()) form.sequence_parallel = false;
      if (!refusal(split, to_execution(form)).empty()) return kInfinity;
      const LayerTable& table = tables.at(form);
      double time = 0, gradient_bytes = 0, border_bytes = 0;
      for (int l = first; l < last; ++l) {
        const auto& layer = instance.graph.layers[static_cast<std::size_t>(l)];
        const LayerCost& layer_cost = table.kinds[static_cast<std::size_t>(layer.kind)];
        time += layer_cost.forward.total_s() + layer_cost.backward_s();
        gradient_bytes += 4 * layer_cost.dense_parameters;
      }
      for (const LayerEdge& edge : layer_edges(instance.graph)) {
        const bool in = edge.target >= first && edge.target < last;
        const bool out = edge.source >= first && edge.source < last;
        if (in == out) continue;
        border_bytes += 2 * edge.bytes / static_cast<double>(instance.graph.samples) * micro_batch /
                        (form.sequence_parallel ? tp : 1);
      }
      const double d = dp;
      return ((time + border_bytes / bandwidth) / d +
              4 * (d - 1) / d * gradient_bytes / static_cast<double>(batches) / bandwidth) /
             micro_batch;
    };
    const ChainLimits chain{
        layers, static_cast<int>(instance.system.groups.front().devices_per_node), batches};
    best = std::min(best, least_slowest(chain, 0, devices, static_cast<int>(batches), cost));
  }
  return best;
}

TEST(PiperPlanner, FindsTheLeastTimePerSample) {
  std::mt19937_64 random(1);
  int different = 0;
  for (int i = 0; i < 150; ++i) {
    PiperInstance instance;
    make(random, 1e15, instance);
    const Outcome outcome = plan_piper("piper", instance.job, instance.system, {}, {});
    ASSERT_EQ(outcome.status, Status::optimal) << i;
    const double best = exhaustive(instance);
    ASSERT_NEAR(outcome.objective, best, 1e-9 * best) << i;
    const Plan& plan = outcome.candidates.front().plan;
    ASSERT_NEAR(time_per_sample(plan, flat_bandwidth(instance.system)), best, 1e-9 * best) << i;
    if (!is_uniform(plan)) ++different;
  }
  EXPECT_GT(different, 10);
}

TEST(PiperPlanner, KeepsMemoryAndNoSmallerSpaceWins) {
  std::mt19937_64 random(2);
  int tight = 0, infeasible = 0;
  for (int i = 0; i < 150; ++i) {
    PiperInstance instance;
    make(random, 1e6 * test::pick(random, 1, 60), instance);
    const Outcome best = plan_piper("piper", instance.job, instance.system, {}, {});
    for (const PiperVariant& variant : kPiperVariants) {
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
        EXPECT_LE(memory_of_stages(candidate.plan)[s].device_total(),
                  usable_bytes(instance.system.groups.front().chip));
      }
      for (const Stage& stage : candidate.plan.stages) {
        const Chunk& chunk = stage.chunks.front();
        const Option& option = options_of(
            candidate.plan.profile, chunk.layers[0])[static_cast<std::size_t>(chunk.options[0])];
        if (option.how.recompute != Recompute::none) ++tight;
      }
    }
  }
  // The cases are of both kinds.
  EXPECT_GT(tight, 0);
  EXPECT_GT(infeasible, 0);
}

/// Do the rounds of all stages nest: each a multiple of the next smaller?
bool rounds_nest(const Plan& plan) {
  std::vector<int> dps;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) dps.push_back(form_of(plan, s).dp);
  std::sort(dps.begin(), dps.end());
  for (std::size_t i = 1; i < dps.size(); ++i) {
    if (dps[i] % dps[i - 1] != 0) return false;
  }
  return true;
}

/// Degrees like 3 beside 2 are run by the shared simulator too, and what they hold more than Piper
/// counts fits.
TEST(PiperPlanner, RoundsThatDoNotNestAreRunAndFit) {
  std::mt19937_64 random(4);
  int different = 0, searched_again = 0;
  for (int i = 0; i < 400; ++i) {
    PiperInstance instance;
    instance.graph = test::tiny_graph(random, test::pick(random, 2, 6));
    const int devices[] = {5, 7, 8, 10, 11, 13};
    instance.system = test::tiny_system(random, devices[i % 6], 1e15);
    instance.job.graph = &instance.graph;
    instance.job.global_batch = i % 2 == 0 ? 192 : 480;
    PiperSpace space;
    space.micro_batch = 16;
    space.tp = 1;
    space.recompute = Recompute::none;
    const Outcome roomy = plan_piper("piper", instance.job, instance.system, space, {});
    ASSERT_FALSE(roomy.candidates.empty());
    const Metrics& metrics = roomy.candidates.front().metrics;
    EXPECT_GT(metrics.iteration_time_s, 0);
    Chip& chip = instance.system.groups.front().chip;
    const double usable_share = usable_bytes(chip) / chip.memory.bytes;
    chip.memory.bytes = metrics.peak_memory_bytes / usable_share * test::pick(random, 70, 99) / 100;
    const Outcome tight = plan_piper("piper", instance.job, instance.system, space, {});
    if (!tight.assumptions.empty() &&
        tight.assumptions.back().find("do not nest") != std::string::npos) {
      ++searched_again;
      EXPECT_NE(tight.status, Status::optimal) << i;
      EXPECT_NE(tight.status, Status::infeasible) << i;
    }
    for (const Outcome* outcome : {&roomy, &tight}) {
      if (outcome->candidates.empty()) continue;
      const Candidate& candidate = outcome->candidates.front();
      if (!rounds_nest(candidate.plan)) ++different;
      EXPECT_LE(candidate.metrics.peak_memory_bytes,
                usable_bytes(outcome == &tight ? chip : candidate.plan.system.groups[0].chip));
      EXPECT_GT(candidate.metrics.iteration_time_s, 0);
    }
  }
  EXPECT_GT(different, 5);
  EXPECT_GT(searched_again, 0);
}

/// Nodes of `per_node` devices, joined by fours, and those again.
System two_levels(std::mt19937_64& random, int nodes, int per_node, double memory_bytes) {
  System system = test::tiny_system(random, per_node * nodes, memory_bytes);
  DeviceGroup& group = system.groups.front();
  group.nodes = nodes;
  group.devices_per_node = per_node;
  group.intra_node.size = per_node;
  NetworkLevel level;
  level.name = "rack";
  level.size = 4;
  level.bytes_per_s = 1e6 * test::pick(random, 1, 100);
  level.unit_bytes_per_s = level.bytes_per_s * per_node;
  system.levels = {level};
  if (nodes > 4) {
    level.size = (nodes + 3) / 4;
    level.oversubscription = 2;
    system.levels.push_back(level);
  }
  return system;
}

TEST(PiperNetwork, HasTheSystemsLevels) {
  std::mt19937_64 random(1);
  const System system = two_levels(random, 8, 2, 1e12);
  const double node = system.groups[0].intra_node.bytes_per_s;
  const double unit = system.levels[0].unit_bytes_per_s;
  EXPECT_EQ(piper_levels_of(system),
            (std::vector<PiperLevel>{{2, node}, {4, unit}, {2, unit / 2}}));
  EXPECT_EQ(device_count(piper_levels_of(system)), 16);

  System part = system;  // Three racks of two nodes do not come out even.
  part.device_count = 12;
  EXPECT_EQ(piper_levels_of(part), (std::vector<PiperLevel>{{2, node}, {6, unit / 2}}));
  part.device_count = 5;
  EXPECT_EQ(piper_levels_of(part), (std::vector<PiperLevel>{{2, node}, {2, unit}}));
  part.device_count = 2;
  EXPECT_EQ(piper_levels_of(part), (std::vector<PiperLevel>{{2, node}}));
  part.device_count = 1;
  EXPECT_EQ(piper_levels_of(part), (std::vector<PiperLevel>{{1, node}}));
  part = system;
  part.groups[0].node_bytes_per_s = unit / 5;
  EXPECT_EQ(piper_levels_of(part)[1].bandwidth_bytes, unit / 5);
}

/// Two superstages, the first on two nodes, the second on one.
TEST(PiperNetwork, FillsEachUnitAlike) {
  PiperSolution solution;
  const auto stage = [&](std::int64_t dp, std::int64_t local_dp, int tp) {
    PiperStage made;
    made.dp = dp;
    made.local_dp = local_dp;
    made.tp = tp;
    solution.stages.push_back(made);
  };
  stage(2, 1, 2);
  stage(4, 2, 1);
  stage(3, 3, 1);
  solution.superstages = {{1, 0, 2, 2, 2, 0}, {1, 2, 1, 1, 1, 0}};
  const std::vector<PiperLevel> levels = {{4, 10}, {3, 1}};
  EXPECT_EQ(devices_of_stages(solution, levels),
            (std::vector<std::vector<std::int64_t>>{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 10}}));

  // Both of these on each of two racks of three nodes.
  solution.superstages = {{2, 0, 3, 2, 2, 0}, {1, 0, 2, 2, 4, 0}, {1, 2, 1, 1, 2, 0}};
  EXPECT_EQ(
      devices_of_stages(solution, {{4, 10}, {3, 1}, {2, 1}}),
      (std::vector<std::vector<std::int64_t>>{
          {0, 1, 4, 5, 12, 13, 16, 17}, {2, 3, 6, 7, 14, 15, 18, 19}, {8, 9, 10, 20, 21, 22}}));
}

/// Of stages, for one micro-batch: tensors that cross their border, the gradients of a whole copy,
/// and the time of their layers.
struct Bytes {
  double border = 0, gradients = 0, seconds = 0;
};
Bytes bytes_of(const Plan& plan, std::size_t first, std::size_t last) {
  Bytes bytes;
  std::set<std::int32_t> inside;
  for (std::size_t s = first; s < last; ++s) {
    const Chunk& chunk = plan.stages[s].chunks.at(0);
    inside.insert(chunk.layers.begin(), chunk.layers.end());
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const LayerCost& cost =
          options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])]
              .cost;
      bytes.gradients += 4 * cost.dense_parameters * plan.stages[s].tp;
      bytes.seconds += cost.forward.total_s() + cost.backward_s();
    }
  }
  for (const ProfileEdge& edge : plan.profile.edges) {
    if (inside.count(edge.source) == inside.count(edge.target)) continue;
    bytes.border += 2 * edge.bytes * form_of(plan, first).micro_batch;
  }
  return bytes;
}

/// Piper's time per sample on nodes and what joins them, from Appendix E and where stages lie:
/// those next to each other on the same nodes are a superstage.
double time_on_levels(const Plan& plan) {
  const std::vector<PiperLevel> levels = piper_levels_of(plan.system);
  const auto nodes_of = [&](const Stage& stage) {
    std::set<std::int64_t> nodes;
    for (const std::int64_t device : stage.devices) nodes.insert(device / levels[0].devices);
    return nodes;
  };
  const Parallelism any = form_of(plan, 0);
  const double batch = static_cast<double>(plan.global_batch) / any.micro_batch;
  const auto sent = [&](double d) { return 4 * (d - 1) / d / batch; };
  double slowest = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto nodes = nodes_of(plan.stages[s]);
    const Parallelism form = form_of(plan, s);
    const Bytes stage = bytes_of(plan, s, s + 1);
    const double border = stage.border / (form.sequence_parallel ? form.tp : 1);
    const double here = form.dp / static_cast<double>(nodes.size());
    slowest =
        std::max(slowest, (stage.seconds + border / levels[0].bandwidth_bytes) / form.dp +
                              sent(here) * stage.gradients / form.tp / levels[0].bandwidth_bytes);
    if (s > 0 && nodes_of(plan.stages[s - 1]) == nodes) continue;
    std::size_t last = s + 1;
    while (last < plan.stages.size() && nodes_of(plan.stages[last]) == nodes) ++last;
    const Bytes all = bytes_of(plan, s, last);
    const auto copies = static_cast<double>(nodes.size());
    slowest = std::max(
        slowest, (all.border / copies + sent(copies) * all.gradients) / levels[1].bandwidth_bytes);
  }
  return slowest / any.micro_batch;
}

TEST(PiperPlanner, LevelsKeepStagesInsideUnits) {
  std::mt19937_64 random(5);
  int spread = 0, uniform = 0, different = 0, priced = 0;
  for (int i = 0; i < 150; ++i) {
    PiperInstance instance;
    instance.graph = test::tiny_graph(random, test::pick(random, 1, 5));
    const int per_node = test::pick(random, 1, 3);
    instance.system = two_levels(random, test::pick(random, 2, 6), per_node,
                                 i % 3 == 0 ? 1e6 * test::pick(random, 5, 60) : 1e15);
    instance.job.graph = &instance.graph;
    instance.job.global_batch = test::pick(random, 1, 12);
    PiperSpace space;
    space.network = PiperNetwork::levels;
    if (i % 2 == 0) space.tp = 1;
    const Outcome outcome = plan_piper("piper", instance.job, instance.system, space, {});
    if (outcome.candidates.empty()) continue;
    const Candidate& candidate = outcome.candidates.front();
    EXPECT_THAT(outcome.assumptions.front(), ::testing::HasSubstr("of these at"));
    ASSERT_TRUE(verify(candidate.plan).holds()) << i;
    if (piper_levels_of(instance.system).size() == 2) {
      EXPECT_NEAR(time_on_levels(candidate.plan), outcome.objective, 1e-9 * outcome.objective) << i;
      ++priced;
    }
    EXPECT_GT(candidate.metrics.iteration_time_s, 0);
    for (std::size_t s = 0; s < candidate.plan.stages.size(); ++s) {
      const Stage& stage = candidate.plan.stages[s];
      std::map<std::int64_t, int> of_node;
      for (const std::int64_t device : stage.devices) ++of_node[device / per_node];
      for (const auto& [node, count] : of_node) {
        EXPECT_EQ(count, of_node.begin()->second) << i;  // Alike on each of its nodes.
        EXPECT_EQ(count % stage.tp, 0) << i;
      }
      if (of_node.size() > 1) ++spread;
      EXPECT_LE(memory_of_stages(candidate.plan)[s].device_total(),
                usable_bytes(instance.system.groups.front().chip));
    }
    ++(is_uniform(candidate.plan) ? uniform : different);
    // The variants' spaces are part of it.
    for (const char* variant : {"no-dp", "no-tp", "no-ar", "dp-only", "tp-only"}) {
      const Outcome smaller = plan_piper(variant, instance.job, instance.system, space, {});
      if (smaller.candidates.empty()) continue;
      EXPECT_GE(smaller.objective, outcome.objective * (1 - 1e-9)) << variant << " " << i;
    }
    // With bandwidth without end everywhere both networks are the same but for where stages may
    // lie.
    System fast = instance.system;
    fast.groups[0].intra_node.bytes_per_s = 1e30;
    for (NetworkLevel& level : fast.levels) level.bytes_per_s = level.unit_bytes_per_s = 1e30;
    PiperSpace flat = space;
    flat.network = PiperNetwork::flat;
    const Outcome with = plan_piper("piper", instance.job, fast, space, {});
    const Outcome without = plan_piper("piper", instance.job, fast, flat, {});
    if (with.status == Status::optimal && without.status == Status::optimal) {
      EXPECT_GE(with.objective, without.objective * (1 - 1e-9)) << i;
    }
  }
  EXPECT_GT(spread, 10);
  EXPECT_GT(uniform, 10);
  EXPECT_GT(different, 10);
  EXPECT_GT(priced, 10);
}

TEST(PiperPlanner, OneNodeIsAFlatNetwork) {
  std::mt19937_64 random(6);
  PiperSpace levels;
  levels.network = PiperNetwork::levels;
  for (int i = 0; i < 60; ++i) {
    PiperInstance instance;
    make(random, 1e15, instance);
    instance.system.device_count =
        std::min(instance.system.device_count, instance.system.groups[0].devices_per_node);
    const Outcome flat = plan_piper("piper", instance.job, instance.system, {}, {});
    const Outcome levelled = plan_piper("piper", instance.job, instance.system, levels, {});
    EXPECT_EQ(levelled.status, flat.status);
    EXPECT_NEAR(levelled.objective, flat.objective, 1e-9 * flat.objective) << i;
  }
  PiperInstance instance;
  make(random, 1e15, instance);
  for (const char* variant : {"equi", "equi-no-tp", "pipedream"}) {
    EXPECT_THROW(plan_piper(variant, instance.job, instance.system, levels, {}), Error);
  }
}

TEST(PiperPlanner, RestrictionsAreKept) {
  std::mt19937_64 random(3);
  PiperInstance instance;
  instance.graph = test::tiny_graph(random, 4);
  instance.system = test::tiny_system(random, 4, 1e12);
  instance.job.graph = &instance.graph;
  instance.job.global_batch = 8;
  PiperSpace space;
  space.dp = 2;
  space.micro_batch = 2;
  space.recompute = Recompute::full;
  const Outcome outcome = plan_piper("piper", instance.job, instance.system, space, {});
  ASSERT_FALSE(outcome.candidates.empty());
  const Parallelism& parallel = outcome.candidates.front().plan.parallel;
  EXPECT_EQ(parallel.dp, 2);
  EXPECT_EQ(parallel.micro_batch, 2);
  EXPECT_EQ(parallel.recompute, Recompute::full);
  for (const Stage& stage : outcome.candidates.front().plan.stages) EXPECT_EQ(stage.dp, 2);
  space.pp = 2;
  const Outcome outside = plan_piper("piper", instance.job, instance.system, space, {});
  EXPECT_EQ(outside.status, Status::infeasible);
  EXPECT_NE(outside.infeasibility->reason.find("--pp"), std::string::npos);
  EXPECT_THROW(plan_piper("none", instance.job, instance.system, {}, {}), Error);
}

}  // namespace
}  // namespace braid
