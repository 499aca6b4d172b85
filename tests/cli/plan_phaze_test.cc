#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"

#include "base/temporary_folder.h"
#include "cli/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::run_braid;
using Words = std::vector<std::string>;

/// Two layers of 2 + 2 ms in Phaze's format, 8 bytes between them, of which the first is the
/// larger; an expert who wants two stages of one layer.
const char* const kPhaze = R"({"maxMemoryPerDevice": 40, "maxDevices": 3, "bandwidth": 8000,
  "mbsInBatch": 4, "activationRecomputation": false, "optimizerAlgorithm": "SGD",
  "fixedPP": 2, "fixedTMPC": 1, "fixedDP": 1, "numTransformerLayers": 2,
  "nodes": {"1": [
    {"id": 0, "parameterSize": 10, "activationSize": 5, "optimalLatencyFw": 2,
     "optimalLatencyBw": 2, "isTensorParallelized": false},
    {"id": 1, "parameterSize": 4, "activationSize": 5, "optimalLatencyFw": 2,
     "optimalLatencyBw": 2, "isTensorParallelized": false}]},
  "edges": {"1": [{"sourceId": 0, "destId": 1, "communicationCost": 8}]}})";

class PlanPhaze : public ::testing::Test {
 protected:
  void SetUp() override { write_file(file_, kPhaze); }

  nlohmann::json plan(const Words& more) {
    Words words = {"plan", "--profile", file_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "input.json";
};

TEST_F(PlanPhaze, PlacesByTheFlushTime) {
  // One stage on each of two devices; a transfer takes 1 ms, beside the pass that waits for it:
  // loads 5 ms. (4 - 1)·5 + 10 = 25 ms; one stage on three devices: 8·2 + 4·2/3·14/8 ms = 20.67 ms;
  // on two: 2·8 + 4·1/2·14/8 = 19.5.
  const auto json = plan({"--memory", "100 B"});
  EXPECT_EQ(json["status"], "optimal");
  EXPECT_EQ(json["planner"], "phaze");
  EXPECT_NEAR(json["objective"]["value"], 19.5e-3, 1e-12);
  EXPECT_EQ(json["dp"], 2);
  EXPECT_EQ(json["pp"], 1);
  EXPECT_NEAR(json["times"]["simulated_s"], 19.5e-3, 1e-12);
  EXPECT_NEAR(json["expert"]["flush_s"], 25e-3, 1e-12);
  EXPECT_EQ(json["rules"]["costs"], "corrected");
  // 2·10 + 5 + 5 for the first of two stages: one stage needs 2·14 + 10 = 38.
  EXPECT_NEAR(plan({"--memory", "37 B"})["objective"]["value"], 25e-3, 1e-12);
}

TEST_F(PlanPhaze, KeepsTheProgramsRulesWhenAsked) {
  // Milliseconds taken for seconds: the network costs next to nothing, and three replicas of
  // ⌈4/3⌉ micro-batches are no better than two.
  const auto json = plan({"--rules", "program", "--memory", "100 B"});
  EXPECT_EQ(json["rules"]["objective"], "program");
  EXPECT_NEAR(json["objective"]["value"], 2 * 8 + 2 * 14.0 / 8000, 1e-12);
  EXPECT_EQ(json.count("program"), 0U);
  EXPECT_NEAR(plan({"--memory", "100 B"})["program"]["own_s"], 16.0035, 1e-12);
}

TEST_F(PlanPhaze, LoopsOverMemoryAndActivations) {
  const auto json = plan({"--memory", "20B,37B,100B", "--activations", "stash,recompute"});
  ASSERT_EQ(json["runs"].size(), 6U);
  EXPECT_NEAR(json["objective"]["value"], 19.5e-3, 1e-12);
  EXPECT_EQ(json["memory_bytes"], 100.0);
  EXPECT_EQ(json["runs"][0]["status"], "infeasible");
  EXPECT_EQ(json["runs"][0]["reason"], "layer 0 alone needs 5 bytes more than a device has");
  EXPECT_EQ(json["runs"][3]["activations"], "recompute");
  const Ran ran = run_braid({"plan", "--profile", file_, "--profile", file_, "--objective",
                             "simulated", "--memory", "30B"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("the simulated time is least"));
  EXPECT_THAT(ran.out, HasSubstr("expert's plan: 2 stages, 1 replica, tensor width 1: 0.025 s"));
}

TEST_F(PlanPhaze, RefusesWhatIsPipers) {
  const std::pair<Words, const char*> cases[] = {
      {{"--planner", "piper"}, "use --planner phaze"},
      {{"--tensors", "once"}, "is for the planner piper"},
      {{"--rules", "paper"}, "use program or corrected"},
      {{"--rules", "program", "--objective", "simulated"}, "phaze --rules corrected"},
      {{"--memory", "1 B,x"}, "\"x\" is not understood"},
      {{"--profile", file_, "--max-microbatches", "4"}, "cannot be the same"},
      {{"--devices", "0"}, "--devices"},
  };
  for (const auto& [words, part] : cases) {
    Words all = {"plan", "--profile", file_};
    all.insert(all.end(), words.begin(), words.end());
    const Ran ran = run_braid(all);
    EXPECT_EQ(ran.status, 2) << part;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace braid
