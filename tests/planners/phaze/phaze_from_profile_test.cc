#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/phaze/from_profile.h"
#include "braid/planners/phaze/placement.h"
#include "braid/planners/phaze_as_piper.h"
#include "braid/planners/piper/search.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

Option option_of(int tp, Recompute recompute, double forward_s, double backward_s) {
  Option option;
  option.how.tp = tp;
  option.how.recompute = recompute;
  option.cost.forward.compute_s = forward_s;
  option.cost.backward_input.compute_s = backward_s;
  option.cost.stash_bytes = 10;
  option.cost.fixed_bytes = 7;
  option.cost.gradient_bytes = 3;
  return option;
}

/// Two layers of one kind with an edge of 4 bytes.
Profile two_layers(std::vector<Option> options) {
  Profile profile;
  profile.layers = {{"first", 0}, {"second", 0}};
  profile.edges = {{0, 1, 4}};
  profile.kinds = {std::move(options)};
  return profile;
}

std::string complaint(const Profile& profile) {
  try {
    phaze_from_profile(profile, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(PhazeFromProfile, TakesWhatIsStated) {
  Profile profile =
      two_layers({option_of(1, Recompute::none, 2, 3), option_of(2, Recompute::none, 1, 2),
                  option_of(2, Recompute::none, 1, 1.5)});
  profile.kinds.front()[1].edge_syncs = {{0, 2, 4}};
  profile.kinds.front()[2].edge_syncs = {{0, 2, 4}};
  const PhazeProblem problem = phaze_from_profile(profile, 1e-3);
  EXPECT_EQ(problem.names, (std::vector<std::string>{"first", "second"}));
  ASSERT_EQ(problem.widths.size(), 2U);
  const PhazeLayer& alone = problem.widths[0].layers[1];
  EXPECT_DOUBLE_EQ(alone.forward_s, 2e-3);
  EXPECT_DOUBLE_EQ(alone.backward_s, 3e-3);
  EXPECT_EQ(alone.weight_bytes, 3);
  EXPECT_EQ(problem.held_bytes(alone), 7);
  EXPECT_EQ(alone.activation_bytes, 10);
  EXPECT_FALSE(alone.tensor_parallel);
  EXPECT_EQ(problem.widths[0].edge_bytes, std::vector<double>{4});
  // The faster of two, and both ends' re-layout: 4 + 2·(2 + 4)/2.
  EXPECT_DOUBLE_EQ(problem.widths[1].layers[0].backward_s, 1.5e-3);
  EXPECT_TRUE(problem.widths[1].layers[0].tensor_parallel);
  EXPECT_EQ(problem.widths[1].edge_bytes, std::vector<double>{10});
}

TEST(PhazeFromProfile, TellsPassesApart) {
  const auto layer = [](std::vector<Option> options) {
    return phaze_from_profile(two_layers(std::move(options)), 1).widths.front().layers.front();
  };
  const PhazeLayer third = layer({option_of(1, Recompute::none, 6, 0)});
  EXPECT_DOUBLE_EQ(third.forward_s, 2);
  EXPECT_DOUBLE_EQ(third.backward_s, 4);
  const PhazeLayer told =
      layer({option_of(1, Recompute::none, 6, 0), option_of(1, Recompute::full, 7.5, 0)});
  EXPECT_DOUBLE_EQ(told.forward_s, 1.5);
  EXPECT_DOUBLE_EQ(told.backward_s, 4.5);
}

TEST(PhazeFromProfile, MemoryFollowsFromParameters) {
  Option option = option_of(1, Recompute::none, 1, 1);
  option.cost.fixed_bytes = option.cost.gradient_bytes = -1;
  option.cost.dense_parameters = 5;
  const PhazeProblem problem = phaze_from_profile(two_layers({option}), 1);
  const Precision precision;
  EXPECT_DOUBLE_EQ(problem.held_bytes(problem.widths.front().layers.front()), 5 * 18);
  EXPECT_DOUBLE_EQ(problem.widths.front().layers.front().weight_bytes,
                   5 * bytes_per_element(precision.gradient));
}

TEST(PhazeFromProfile, NamesWhatIsMissing) {
  EXPECT_THAT(complaint(two_layers({option_of(1, Recompute::full, 1, 1)})),
              HasSubstr("first: the layer has no option that phaze can use"));
  Profile different = two_layers({option_of(1, Recompute::none, 1, 1)});
  different.kinds.push_back({option_of(2, Recompute::none, 1, 1)});
  different.layers[1].kind = 1;
  EXPECT_THAT(complaint(different), HasSubstr("second: no tensor-parallel degree has an option"));
  Profile sizes =
      two_layers({option_of(1, Recompute::none, 1, 1), option_of(2, Recompute::none, 1, 1)});
  sizes.kinds.front()[1].how.micro_batch = 2;
  EXPECT_THAT(complaint(sizes), HasSubstr("several micro-batch sizes"));
}

/// One stage on one device costs the same by both planners; Piper then also mixes.
TEST(PiperFromPhaze, AgreesOnOneDevice) {
  PhazeProblem problem;
  problem.names = {"a", "b"};
  problem.edges = {{0, 1}};
  problem.devices = 1;
  problem.micro_batches = 3;
  problem.bytes_per_s = 2;
  problem.memory_bytes = 100;
  problem.optimizer_bytes_per_weight_byte = 1;
  problem.widths = {{1, {{2, 3, 5, 7, false}, {1, 4, 6, 8, false}}, {9}},
                    {2, {{1, 2, 3, 4, true}, {1, 2, 3, 4, true}}, {11}}};
  const PiperProblem piper = piper_from_phaze(problem);
  ASSERT_EQ(piper.nodes.size(), 2U);
  ASSERT_EQ(piper.nodes[1].degrees.size(), 2U);
  const PiperOption& stash = piper.nodes[1].degrees[0].options[0];
  EXPECT_EQ(stash.time, 5);
  EXPECT_EQ(stash.in_flight_bytes, 8);
  EXPECT_EQ(stash.fixed_bytes, 18);
  const PiperOption& recompute = piper.nodes[1].degrees[0].options[1];
  EXPECT_EQ(recompute.time, 6);
  EXPECT_EQ(recompute.in_flight_bytes, 9);
  EXPECT_EQ(recompute.fixed_bytes, 26);
  EXPECT_EQ(piper.nodes[0].degrees[1].options[0].out_sync_bytes, std::vector<double>{2});
  EXPECT_EQ(piper.nodes[1].degrees[1].options[0].in_sync_bytes, std::vector<double>{2});
  const PiperSolution found = solve_piper(piper, {});
  const auto placed = place_phaze(problem, {});
  ASSERT_EQ(found.stages.size(), 1U);
  ASSERT_TRUE(placed.has_value());
  EXPECT_DOUBLE_EQ(placed->flush_s, 3 * found.time);
  EXPECT_DOUBLE_EQ(placed->stages.front().peak_bytes, found.stages.front().memory_bytes);
}

}  // namespace
}  // namespace braid
