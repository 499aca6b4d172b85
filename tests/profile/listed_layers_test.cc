#include "braid/profile/listed_layers.h"

#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/profile/estimated_layers.h"
#include "braid/profile/pass_split.h"
#include "braid/system/system.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

Execution run_as(int tp, int micro_batch, Recompute recompute = Recompute::none) {
  Execution how;
  how.tp = tp;
  how.micro_batch = micro_batch;
  how.recompute = recompute;
  return how;
}

/// An option with all of its time in one figure.
Option in_one_figure(int tp, Recompute recompute, double time_s) {
  Option option;
  option.how = run_as(tp, 1, recompute);
  option.cost.forward.compute_s = time_s;
  return option;
}

Profile profile_of_kinds(std::vector<std::vector<Option>> kinds) {
  Profile profile;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    profile.layers.push_back({"layer", static_cast<std::int32_t>(kind)});
  }
  profile.kinds = std::move(kinds);
  return profile;
}

TEST(ListedLayers, CostWhatTheEstimatorWrote) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const System system = load_system("dgx-h100:8");
  const Precision precision;
  const std::vector<Execution> executions = {run_as(1, 1), run_as(2, 1), run_as(2, 4),
                                             run_as(2, 4, Recompute::full)};
  const ListedLayers listed(estimate_profile(graph, executions, precision, system));
  const EstimatedLayers estimated(graph);
  EXPECT_EQ(listed.layers().layers, estimated.layers().layers);
  EXPECT_EQ(listed.layers().edges, estimated.layers().edges);
  EXPECT_EQ(listed.layers().shared, estimated.layers().shared);
  EXPECT_EQ(listed.parameters(), estimated.parameters());
  const auto read = listed.on(system, precision);
  const auto made = estimated.on(system, precision);
  for (std::size_t kind = 0; kind < listed.layers().kinds.size(); ++kind) {
    for (const Execution& how : executions) {
      LayerGroups groups;
      groups.tp = span_of(system, 1, how.tp);
      EXPECT_EQ(read->cost(kind, {}, how, groups), made->cost(kind, {}, how, groups));
      EXPECT_EQ(read->option(kind, {}, how).name, made->option(kind, {}, how).name);
    }
  }
}

TEST(ListedLayers, BoundWhatIsNotListed) {
  const Graph graph = load_model("gpt2", {.seq_len = 512, .dims = {}});
  const System system = load_system("dgx-h100:8");
  const ListedLayers listed(
      estimate_profile(graph, {run_as(1, 1), run_as(2, 1)}, Precision(), system));
  const auto costs = listed.on(system, Precision());
  const LayerCost never = costs->cost(0, {}, run_as(4, 1), {});
  for (const Execution& how : {run_as(1, 1), run_as(2, 1)}) {
    const LayerCost cost = costs->cost(0, {}, how, {});
    EXPECT_GT(never.forward.total_s(), 1e20 * cost.forward.total_s());
    EXPECT_LE(never.dense_parameters, cost.dense_parameters);
    EXPECT_LE(never.stash_bytes, cost.stash_bytes);
    EXPECT_LE(never.working_bytes, cost.working_bytes);
  }
}

TEST(ListedLayers, AllowWhatEveryLayerHas) {
  const ListedLayers layers(profile_of_kinds(
      {{in_one_figure(1, Recompute::none, 6), in_one_figure(3, Recompute::none, 2)},
       {in_one_figure(1, Recompute::none, 6), in_one_figure(2, Recompute::none, 4)}}));
  const SplitLimits limits = layers.limits(8);
  EXPECT_EQ(refusal(limits, run_as(1, 1)), "");
  EXPECT_EQ(refusal(limits, run_as(2, 1)), "the profile has no option of tp 2 for every layer");
  EXPECT_TRUE(limits.listed->has(run_as(1, 1)));
  EXPECT_FALSE(limits.listed->has(run_as(1, 2)));
  EXPECT_FALSE(limits.listed->has(run_as(1, 1, Recompute::full)));
  EXPECT_EQ(limits.listed->micro_batches(), std::set<int>{1});
  EXPECT_EQ(layers.least_work_s(), 6 + 6);
}

TEST(ListedLayers, CountWhatIsStatedInPlaceOfParameters) {
  Option option = in_one_figure(1, Recompute::none, 1);
  option.cost.dense_parameters = 10;
  option.cost.fixed_bytes = 7;
  const ListedLayers layers(profile_of_kinds({{option}}));
  const System system = load_system("dgx-h100:8");
  const LayerCost cost = layers.on(system, Precision())->cost(0, {}, option.how, {});
  EXPECT_EQ(cost.fixed_bytes, 7);
  EXPECT_EQ(cost.gradient_bytes, 40);
  EXPECT_EQ(cost.dense_parameters, 0);
}

TEST(PassSplit, TellsPassesApartByWhatRecomputationAdds) {
  const Profile profile = with_passes_apart(profile_of_kinds(
      {{in_one_figure(1, Recompute::none, 6), in_one_figure(1, Recompute::full, 8)},
       {in_one_figure(1, Recompute::none, 6)},
       {in_one_figure(1, Recompute::full, 8)}}));
  const auto expect_passes = [&](std::size_t kind, std::size_t option, double forward_s,
                                 double again_s, double backward_s) {
    const LayerCost& cost = profile.kinds[kind][option].cost;
    EXPECT_EQ(cost.forward.total_s(), forward_s);
    EXPECT_EQ(cost.recompute.total_s(), again_s);
    EXPECT_EQ(cost.backward_input.total_s() + cost.backward_weight.total_s(), backward_s);
  };
  expect_passes(0, 0, 2, 0, 4);
  expect_passes(0, 1, 2, 2, 4);
  expect_passes(1, 0, 2, 0, 4);
  expect_passes(2, 0, 2, 2, 4);
}

TEST(PassSplit, LeavesPassesThatAreApart) {
  Option option = in_one_figure(1, Recompute::none, 1);
  option.cost.backward_input.compute_s = 5;
  const Profile profile = profile_of_kinds({{option}});
  EXPECT_EQ(with_passes_apart(profile), profile);
  EXPECT_EQ(in_seconds(profile, 1e-3).kinds[0][0].cost.backward_s(), 5e-3);
}

}  // namespace
}  // namespace braid
