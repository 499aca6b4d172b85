#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/plan/stage_load.h"
#include "braid/planners/amp/amp_job.h"
#include "braid/planners/amp/amp_mixed_job.h"
#include "braid/planners/amp/mixed_graph_placement.h"
#include "braid/planners/amp/mixed_placement.h"
#include "braid/planners/amp/mixed_planner.h"
#include "braid/profile/listed_layers.h"
#include "braid/system/links.h"
#include "braid/verify/verify.h"

#include "planners/two_kinds.h"

namespace braid {
namespace {

using test::pick;
using test::tiny_graph;
using test::two_kinds;

constexpr std::int64_t kPlenty = 1'000'000;

struct Case {
  explicit Case(std::uint64_t seed, int most_of_a_kind = 2)
      : random(seed), graph(tiny_graph(random, pick(random, 2, 5))) {
    const double memory = pick(random, 0, 2) == 0 ? 1e6 * pick(random, 1, 5) : 1e9;
    system = two_kinds(random, pick(random, 1, most_of_a_kind), pick(random, 1, 2), memory);
    job.graph = &graph;
    job.global_batch = system.device_count * pick(random, 1, 2);
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  Case(Case&&) = delete;
  Case& operator=(Case&&) = delete;
  ~Case() = default;

  std::mt19937_64 random;
  Graph graph;
  System system;
  Job job;
};

/// AMP's cost of stages by its definition.
double cost_by_definition(const Case& c, MixedJob& mixed, const std::vector<PlacedStage>& stages,
                          std::vector<std::int32_t> order = {}) {
  double slowest_s = 0, sum_s = 0, sync_s = 0;
  const Configuration& form = stages.front().config;
  if (order.empty()) {
    order.resize(c.graph.layers.size());
    std::iota(order.begin(), order.end(), 0);
  }
  const auto place_of = [&](std::int32_t layer) {
    return std::find(order.begin(), order.end(), layer) - order.begin();
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const PlacedStage& stage = stages[s];
    const auto& layers = mixed.layers(form, groups_of(mixed.system(), stage.devices));
    double time_s = 0, parameters = 0;
    for (std::int32_t l = stage.begin; l < stage.end; ++l) {
      const auto layer = static_cast<std::size_t>(order[static_cast<std::size_t>(l)]);
      time_s += layers[layer].time_s();
      parameters += layers[layer].dense_parameters;
    }
    slowest_s = std::max(slowest_s, time_s);
    sum_s += time_s;
    if (s + 1 < stages.size()) {
      std::map<std::int32_t, double> crossing;  // Every output once.
      for (const ProfileEdge& edge : mixed.chain().edges) {
        if (place_of(edge.source) >= stage.end || place_of(edge.target) < stage.end) continue;
        crossing[edge.source] = edge.bytes;
      }
      double bytes = 0;
      for (const auto& [source, of_sample] : crossing) bytes += of_sample;
      bytes = handover_bytes({0, 1, bytes}, to_parallelism(form), to_parallelism(form));
      if (bytes > 0) {
        sum_s += handover_s(c.system, stage.devices, stages[s + 1].devices, bytes);
      }
    }
    for (std::size_t shard = 0; form.dp > 1 && shard < static_cast<std::size_t>(form.tp); ++shard) {
      double link = kInfinity;
      for (int r = 0; r < form.dp; ++r) {
        const auto from = static_cast<std::size_t>(r * form.tp) + shard;
        const auto to = static_cast<std::size_t>((r + 1) % form.dp * form.tp) + shard;
        link = std::min(link, link_bytes_per_s(c.system, stage.devices[from], stage.devices[to]));
      }
      sync_s = std::max(sync_s, 2.0 * (form.dp - 1) / form.dp * parameters *
                                    bytes_per_element(c.job.precision.gradient) / link);
    }
  }
  return static_cast<double>(form.num_micro_batches - 1) * slowest_s + sum_s + sync_s;
}

/// Of all splits of the layers over stages on these devices, within memory, the least cost.
double best_split_s(const Case& c, MixedJob& mixed, std::vector<PlacedStage>& stages,
                    std::size_t stage, std::int32_t begin) {
  const auto layers = static_cast<std::int32_t>(c.graph.layers.size());
  if (stage == stages.size()) {
    if (begin != layers || mixed.missing_bytes(stages) > 0) return kInfinity;
    return cost_by_definition(c, mixed, stages);
  }
  double best_s = kInfinity;
  for (std::int32_t end = begin + 1; end <= layers; ++end) {
    stages[stage].begin = begin;
    stages[stage].end = end;
    best_s = std::min(best_s, best_split_s(c, mixed, stages, stage + 1, end));
  }
  return best_s;
}

/// Of all ways to give each layer a stage such that edges never lead back, within memory, the least
/// cost.
double best_assignment_s(const Case& c, MixedJob& mixed, std::vector<PlacedStage> stages) {
  double best_s = kInfinity;
  std::vector<std::vector<std::int32_t>> layers(stages.size());
  const std::function<void(std::int32_t)> extend = [&](std::int32_t layer) {
    if (layer < static_cast<std::int32_t>(c.graph.layers.size())) {
      for (std::size_t s = 0; s < stages.size(); ++s) {
        const bool leads_back = std::any_of(
            mixed.chain().edges.begin(), mixed.chain().edges.end(), [&](const ProfileEdge& edge) {
              if (edge.target != layer) return false;
              return std::any_of(layers.begin() + static_cast<std::ptrdiff_t>(s) + 1, layers.end(),
                                 [&](const auto& later) {
                                   return std::count(later.begin(), later.end(), edge.source) > 0;
                                 });
            });
        if (leads_back) continue;
        layers[s].push_back(layer);
        extend(layer + 1);
        layers[s].pop_back();
      }
      return;
    }
    std::vector<std::int32_t> order;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (layers[s].empty()) return;
      stages[s].begin = static_cast<std::int32_t>(order.size());
      order.insert(order.end(), layers[s].begin(), layers[s].end());
      stages[s].end = static_cast<std::int32_t>(order.size());
    }
    const double cost_s = cost_by_definition(c, mixed, stages, order);
    if (cost_s < best_s && mixed.missing_bytes(stages, order) <= 0) best_s = cost_s;
  };
  extend(0);
  return best_s;
}

/// Every order of the shard groups, stage by stage: the least of `evaluate`.
template <typename Evaluate>
double least_cost_s(AmpMixedJob& amp, Evaluate evaluate) {
  double least_s = kInfinity;
  for (const Configuration& configuration : amp.configurations()) {
    std::vector<std::int64_t> groups;
    for (const auto& node : amp.nodes()) {
      for (std::size_t d = 0; d < node.size(); d += static_cast<std::size_t>(configuration.tp)) {
        groups.push_back(node[d]);
      }
    }
    std::set<AmpMixedJob::Placement> seen;
    do {
      std::vector<std::int64_t> devices;
      for (const std::int64_t first : groups) {
        for (int shard = 0; shard < configuration.tp; ++shard) devices.push_back(first + shard);
      }
      const auto placement = AmpMixedJob::placement_of(configuration, devices);
      if (!seen.insert(placement).second) continue;
      const std::optional<AmpMixedAssignment> found = evaluate(configuration, placement);
      if (found.has_value()) least_s = std::min(least_s, found->cost_s);
    } while (std::next_permutation(groups.begin(), groups.end()));
  }
  return least_s;
}

TEST(AmpMixed, CostsAreThoseOfTheDefinition) {
  int checked = 0, tight = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c(seed);
    AmpMixedJob amp(c.job, c.system, {}, "amp");
    MixedJob mixed(c.job, c.system, "amp");
    std::vector<std::int64_t> ranks;
    for (const auto& node : amp.nodes()) ranks.insert(ranks.end(), node.begin(), node.end());
    for (const Configuration& configuration : amp.configurations()) {
      const auto placement = AmpMixedJob::placement_of(configuration, ranks);
      const auto found = amp.evaluate(configuration, placement);
      std::vector<PlacedStage> stages;
      for (const auto& devices : placement) stages.push_back({0, 0, configuration, devices});
      const double best_s = best_split_s(c, mixed, stages, 0, 0);
      ASSERT_EQ(found.has_value(), best_s < kInfinity) << seed;
      if (!found.has_value()) {
        ++tight;
        continue;
      }
      ++checked;
      EXPECT_NEAR(found->cost_s, cost_by_definition(c, mixed, found->stages), 1e-9 * found->cost_s);
      EXPECT_LE(mixed.missing_bytes(found->stages), 0);
      EXPECT_NEAR(found->cost_s, best_s, 1e-9 * best_s) << seed;
    }
  }
  EXPECT_GT(checked, 200);
  EXPECT_GT(tight, 10);
}

double least_cost_s(AmpMixedJob& amp) {
  return least_cost_s(
      amp, [&](const Configuration& configuration, const AmpMixedJob::Placement& placement) {
        return amp.evaluate(configuration, placement);
      });
}

/// A hundred jobs a shard.
class AmpMixedPlacement : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(AmpMixedPlacement, IsTheBestOfAll) {
  int found = 0, none = 0;
  for (std::uint64_t seed = 100 * GetParam(); seed < 100 * (GetParam() + 1); ++seed) {
    const Case c(seed);
    AmpMixedJob amp(c.job, c.system, {}, "amp");
    const double expected_s = least_cost_s(amp);
    const AmpMixedPlacements placed = place_amp_mixed(amp, kPlenty);
    if (expected_s == kInfinity) {
      EXPECT_TRUE(placed.found.empty()) << seed;
      ++none;
      continue;
    }
    ++found;
    double best_s = kInfinity;
    for (const AmpMixedAssignment& one : placed.found) best_s = std::min(best_s, one.cost_s);
    EXPECT_NEAR(best_s, expected_s, 1e-9 * expected_s) << seed;
    EXPECT_NEAR(placed.bound_s, expected_s, 1e-9 * expected_s) << seed;
    // With little work there is a gap, and it holds.
    const AmpMixedPlacements hasty = place_amp_mixed(amp, 3);
    EXPECT_LE(hasty.bound_s, expected_s * (1 + 1e-9)) << seed;
  }
  EXPECT_GT(found, 40);
  EXPECT_GT(none, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AmpMixedPlacement, ::testing::Range<std::uint64_t>(0, 5));

TEST(AmpMixed, AssignsBranchesInTheBestWayThereIs) {
  int checked = 0, tight = 0, better = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c(seed);
    test::add_branches(c.random, c.graph);
    AmpMixedJob amp(c.job, c.system, {}, "amp");
    if (!amp.is_graph()) continue;
    MixedJob mixed(c.job, c.system, "amp");
    std::vector<std::int64_t> ranks;
    for (const auto& node : amp.nodes()) ranks.insert(ranks.end(), node.begin(), node.end());
    for (const Configuration& configuration : amp.configurations()) {
      if (configuration.pp == 1) continue;
      const auto placement = AmpMixedJob::placement_of(configuration, ranks);
      std::int64_t steps = 0;
      const auto found = amp.evaluate_as_graph(configuration, placement, kInfinity, steps);
      std::vector<PlacedStage> stages;
      for (const auto& devices : placement) stages.push_back({0, 0, configuration, devices});
      const double best_s = best_assignment_s(c, mixed, stages);
      ASSERT_EQ(found.has_value(), best_s < kInfinity) << seed;
      if (!found.has_value()) {
        ++tight;
        continue;
      }
      ++checked;
      ASSERT_NEAR(found->cost_s, best_s, 1e-9 * best_s) << seed;
      ASSERT_LE(mixed.missing_bytes(found->stages, found->order), 0) << seed;
      const auto in_order = amp.evaluate(configuration, placement);
      if (!in_order.has_value()) continue;
      ASSERT_LE(found->cost_s, in_order->cost_s * (1 + 1e-9)) << seed;
      better += found->cost_s < in_order->cost_s * (1 - 1e-9) ? 1 : 0;
    }
  }
  EXPECT_GT(checked, 100);
  EXPECT_GT(tight, 5);
  EXPECT_GT(better, 10);
}

TEST_P(AmpMixedPlacement, OfBranchesIsTheBestOfAll) {
  int found = 0, better = 0;
  for (std::uint64_t seed = 30 * GetParam(); seed < 30 * (GetParam() + 1); ++seed) {
    Case c(seed);
    test::add_branches(c.random, c.graph);
    AmpMixedJob amp(c.job, c.system, {}, "amp");
    if (!amp.is_graph()) continue;
    std::int64_t steps = 0;
    const double in_order_s = least_cost_s(amp);
    const double as_graph_s = least_cost_s(
        amp, [&](const Configuration& configuration, const AmpMixedJob::Placement& placement) {
          return amp.evaluate_as_graph(configuration, placement, kInfinity, steps);
        });
    const double expected_s = std::min(in_order_s, as_graph_s);
    const Outcome outcome = plan_amp_mixed(c.job, c.system, {}, Budget{kPlenty}, {});
    ASSERT_EQ(outcome.candidates.empty(), expected_s == kInfinity) << seed;
    if (outcome.candidates.empty()) {
      EXPECT_EQ(outcome.status, Status::infeasible) << seed;
      continue;
    }
    ++found;
    better += expected_s < in_order_s * (1 - 1e-9) ? 1 : 0;
    EXPECT_EQ(outcome.status, Status::optimal) << seed;
    EXPECT_NEAR(outcome.objective, expected_s, 1e-9 * expected_s) << seed;
    const Verification report = verify(outcome.candidates.front().plan);
    EXPECT_TRUE(report.holds()) << seed;
    // With little work there is a gap, and it holds.
    const Outcome hasty = plan_amp_mixed(c.job, c.system, {}, Budget{3}, {});
    EXPECT_LE(hasty.search_bound_s, expected_s * (1 + 1e-9)) << seed;
    AmpMixedParts parts(amp);
    const AmpMixedPlacements without_steps =
        place_amp_mixed_as_graph(parts, place_amp_mixed(amp, 3), kPlenty, {}, 0);
    EXPECT_LE(without_steps.bound_s, expected_s * (1 + 1e-9)) << seed;
    for (const auto plan : {plan_amp_mixed, plan_amp_sa_mixed, plan_random_mixed}) {
      const Outcome other = plan(c.job, c.system, {}, {}, {});
      if (other.candidates.empty()) continue;
      EXPECT_GE(other.objective, expected_s * (1 - 1e-9)) << seed;
      EXPECT_TRUE(verify(other.candidates.front().plan).holds()) << seed;
    }
  }
  EXPECT_GT(found, 10);
  EXPECT_GT(better, 0);
}

TEST(AmpMixed, CostsOfOneKindAreThoseOfTheHomogeneousPlanner) {
  int same = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = tiny_graph(random, 5);
    const System one = test::tiny_system(random, 4, 1e9);
    Job job;
    job.graph = &graph;
    job.global_batch = 8;
    AmpJob homogeneous(job, one, {}, "amp");
    AmpMixedJob mixed(job, one, {}, "amp");
    for (const Configuration& configuration : mixed.configurations()) {
      if (configuration.recompute != Recompute::none) continue;
      const auto expected = homogeneous.evaluate(configuration);
      const auto found = mixed.evaluate(
          configuration,
          AmpMixedJob::placement_of(configuration, std::vector<std::int64_t>{0, 1, 2, 3}));
      ASSERT_TRUE(expected.has_value() && found.has_value());
      EXPECT_NEAR(found->cost_s, expected->cost_s, 1e-9 * expected->cost_s)
          << seed << " tp " << configuration.tp << " dp " << configuration.dp;
      ++same;
    }
  }
  EXPECT_GT(same, 300);
}

TEST(AmpMixed, StatedGradientsCostWhatTheirParametersDo) {
  const auto profile_of = [](bool stated) {
    Profile profile;
    Option option;
    option.name = "option";
    option.cost.forward.compute_s = 1e-3;
    option.cost.backward_input.compute_s = 2e-3;
    if (stated) {
      option.cost.fixed_bytes = 1;
      option.cost.gradient_bytes = 4e6;
    } else {
      option.cost.dense_parameters = 1e6;
    }
    profile.kinds = {{option}};
    profile.layers = {{"first", 0}, {"second", 0}, {"third", 0}};
    profile.edges = {{0, 1, 10}, {1, 2, 10}};
    return profile;
  };
  std::mt19937_64 random(7);
  const System system = two_kinds(random, 2, 2, 1e12);
  const ListedLayers stated(profile_of(true)), counted(profile_of(false));
  Job job;
  job.global_batch = 4;
  ASSERT_EQ(bytes_per_element(job.precision.gradient), 4);
  Job other = job;
  job.layers = &stated;
  other.layers = &counted;
  AmpMixedJob mixed(job, system, {}, "amp"), expected(other, system, {}, "amp");
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(system.device_count));
  std::iota(ranks.begin(), ranks.end(), 0);
  int replicated = 0;
  for (const Configuration& configuration : mixed.configurations()) {
    const auto placement = AmpMixedJob::placement_of(configuration, ranks);
    const auto found = mixed.evaluate(configuration, placement);
    const auto plain = expected.evaluate(configuration, placement);
    ASSERT_EQ(found.has_value(), plain.has_value());
    if (!found) continue;
    EXPECT_DOUBLE_EQ(found->cost_s, plain->cost_s);
    replicated += configuration.dp > 1 ? 1 : 0;
  }
  EXPECT_GT(replicated, 0);
  // The bounds of placements count them, too.
  EXPECT_DOUBLE_EQ(place_amp_mixed(mixed, 1000).bound_s, place_amp_mixed(expected, 1000).bound_s);
}

TEST(AmpMixed, PlansVerifyAndTheBaselinesAreNoBetter) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Case c(seed, 4);
    const Outcome best = plan_amp_mixed(c.job, c.system, {}, {}, {});
    for (const auto plan : {plan_amp_mixed, plan_amp_sa_mixed, plan_random_mixed}) {
      const Outcome outcome = plan(c.job, c.system, {}, {}, {});
      if (best.candidates.empty()) {
        EXPECT_TRUE(outcome.candidates.empty()) << seed;
        ASSERT_TRUE(outcome.infeasibility.has_value()) << seed;
        continue;
      }
      if (outcome.candidates.empty()) continue;
      ++planned;
      EXPECT_GE(outcome.objective, best.search_bound_s * (1 - 1e-9)) << seed;
      EXPECT_GE(outcome.objective, best.objective * (1 - 1e-9)) << seed;
      for (const Check& check : verify(outcome.candidates.front().plan).checks) {
        EXPECT_TRUE(check.holds) << seed << " " << check.name << ": " << check.detail;
      }
    }
  }
  EXPECT_GT(planned, 40);
}

double cost_of(const Job& job, const System& system) {
  const Outcome outcome = plan_amp_mixed(job, system, {}, {}, {});
  if (outcome.candidates.empty()) return kInfinity;
  EXPECT_EQ(outcome.status, Status::optimal);
  return outcome.objective;
}

TEST(AmpMixed, LawsHold) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Case c(seed);
    const double cost_s = cost_of(c.job, c.system);
    System swapped = c.system;
    std::swap(swapped.groups[0], swapped.groups[1]);
    const double swapped_s = cost_of(c.job, swapped);
    if (cost_s == kInfinity) {
      EXPECT_EQ(swapped_s, kInfinity) << seed;
      continue;
    }
    EXPECT_NEAR(swapped_s, cost_s, 1e-9 * cost_s) << seed;
    System faster = c.system;
    faster.levels.front().bytes_per_s *= 2;
    faster.levels.front().unit_bytes_per_s *= 2;
    EXPECT_LE(cost_of(c.job, faster), cost_s * (1 + 1e-9)) << seed;
    for (std::size_t g = 0; g < 2; ++g) {
      System larger = c.system;
      larger.groups[g].chip.memory.bytes *= 2;
      EXPECT_LE(cost_of(c.job, larger), cost_s * (1 + 1e-9)) << seed;
    }
  }
}

TEST(AmpMixed, SaysWhichStageLacksHowMany) {
  Case c(3);
  for (DeviceGroup& group : c.system.groups) group.chip.memory.bytes = 1000;
  const Outcome outcome = plan_amp_mixed(c.job, c.system, {}, {}, {});
  EXPECT_EQ(outcome.status, Status::infeasible);
  ASSERT_TRUE(outcome.infeasibility.has_value());
  EXPECT_GE(outcome.infeasibility->stage, 0);
  EXPECT_GT(outcome.infeasibility->needed_bytes, outcome.infeasibility->available_bytes);
}

TEST(AmpMixed, RefusesWhatAmpLacks) {
  const Case c(3);
  SpaceOptions space;
  space.vp = 2;
  EXPECT_THROW(plan_amp_mixed(c.job, c.system, space, {}, {}), Error);
  space = {};
  space.schedule = ScheduleKind::gpipe;
  EXPECT_THROW(plan_amp_sa_mixed(c.job, c.system, space, {}, {}), Error);
  System large = c.system;
  large.groups[0].nodes = 4000;
  large.device_count = 4000 * large.groups[0].devices_per_node +
                       large.groups[1].nodes * large.groups[1].devices_per_node;
  EXPECT_THROW(plan_random_mixed(c.job, large, {}, {}, {}), Error);
}

}  // namespace
}  // namespace braid
