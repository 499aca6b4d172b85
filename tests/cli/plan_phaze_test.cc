#include <algorithm>
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
  const auto printed = plan({"--memory", "100 B"});
  EXPECT_EQ(printed["status"], "optimal");
  EXPECT_EQ(printed["planner"], "phaze");
  EXPECT_NEAR(printed["objective"]["value"], 19.5e-3, 1e-12);
  EXPECT_EQ(printed["dp"], 2);
  EXPECT_EQ(printed["pp"], 1);
  EXPECT_NEAR(printed["times"]["simulated_s"], 19.5e-3, 1e-12);
  EXPECT_NEAR(printed["expert"]["flush_s"], 25e-3, 1e-12);
  EXPECT_EQ(printed["rules"]["costs"], "corrected");
  // 2·10 + 5 + 5 for the first of two stages: one stage needs 2·14 + 10 = 38.
  EXPECT_NEAR(plan({"--memory", "37 B"})["objective"]["value"], 25e-3, 1e-12);
}

TEST_F(PlanPhaze, KeepsTheProgramsRulesWhenAsked) {
  // Milliseconds taken for seconds: the network costs next to nothing, and three replicas of
  // ⌈4/3⌉ micro-batches are no better than two.
  const auto printed = plan({"--rules", "program", "--memory", "100 B"});
  EXPECT_EQ(printed["rules"]["objective"], "program");
  EXPECT_NEAR(printed["objective"]["value"], 2 * 8 + 2 * 14.0 / 8000, 1e-12);
  EXPECT_EQ(printed.count("program"), 0U);
  EXPECT_NEAR(plan({"--memory", "100 B"})["program"]["own_s"], 16.0035, 1e-12);
}

TEST_F(PlanPhaze, LoopsOverMemoryAndActivations) {
  const auto printed = plan({"--memory", "20B,37B,100B", "--activations", "stash,recompute"});
  ASSERT_EQ(printed["runs"].size(), 6U);
  EXPECT_NEAR(printed["objective"]["value"], 19.5e-3, 1e-12);
  EXPECT_EQ(printed["memory_bytes"], 100.0);
  EXPECT_EQ(printed["runs"][0]["status"], "infeasible");
  EXPECT_EQ(printed["runs"][0]["reason"], "layer 0 alone needs 5 bytes more than a device has");
  EXPECT_EQ(printed["runs"][3]["activations"], "recompute");
  const Ran ran = run_braid({"plan", "--profile", file_, "--profile", file_, "--objective",
                             "simulated", "--memory", "30B"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("the simulated time is least"));
  EXPECT_THAT(ran.out, HasSubstr("expert's plan: 2 stages, 1 replica, tensor width 1: 0.025 s"));
}

TEST_F(PlanPhaze, TheFormulaOfTheProgramMayBeLeastUnderCorrectedRules) {
  const auto printed = plan({"--memory", "100 B", "--objective", "program"});
  EXPECT_EQ(printed["rules"]["objective"], "program");
  EXPECT_EQ(printed["rules"]["costs"], "corrected");
  EXPECT_EQ(printed["objective"]["value"], printed["times"]["program_s"]);
  EXPECT_EQ(printed["rules"]["latency_unit_s"], 1e-3);
  EXPECT_EQ(plan({"--rules", "program", "--objective", "program"})["rules"]["costs"], "program");
}

TEST_F(PlanPhaze, PipersPlannersReadIt) {
  // Two replicas: 8 ms halved, and 4·1/2/4·14 bytes at 8000 a second.
  const auto printed = plan({"--memory", "100 B", "--planner", "piper"});
  EXPECT_EQ(printed["status"], "optimal");
  EXPECT_NEAR(printed["objective"]["value"], 4e-3 + 0.5 * 14 / 8000, 1e-12);
  EXPECT_EQ(printed["time_unit"], "s");
  EXPECT_EQ(printed["stages"][0]["dp"], 2);
  EXPECT_EQ(printed["assumptions"].size(), 1U);
  EXPECT_NEAR(
      plan({"--memory", "100 B", "--planner", "dp-only", "--time-unit", "s"})["objective"]["value"],
      4 + 0.5 * 14 / 8000, 1e-12);
}

/// Every fault of an input: one line that names the place, exit status 2, nothing on stdout.
TEST_F(PlanPhaze, RefusesBadInputsInOneLine) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kPhaze;
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return text.replace(place, from.size(), to);
  };
  const std::string edge = R"({"sourceId": 0, "destId": 1, "communicationCost": 8})";
  const std::pair<std::string, const char*> cases[] = {
      {with(edge, edge + R"(, {"sourceId": 1, "destId": 0, "communicationCost": 8})"),
       "edges: layer 0 is on or behind a cycle of edges"},
      {with(edge, R"({"sourceId": 0, "destId": 7, "communicationCost": 8})"),
       "destId: there is no layer 7"},
      {with(R"({"id": 1,)", R"({"id": 0,)"), "id: there is another layer 0"},
      {with(R"("optimalLatencyFw": 2)", R"("optimalLatencyFw": -2)"),
       "optimalLatencyFw: -2 is out of range"},
      {with(R"("communicationCost": 8)", R"("communicationCost": -8)"),
       "communicationCost: -8 is out of range"},
      {with(R"("maxDevices": 3)", R"("maxDevices": 0)"), "maxDevices: 0 is out of range"},
      {with(R"("mbsInBatch": 4)", R"("mbsInBatch": 0)"), "mbsInBatch: 0 is out of range"},
      {with(R"("optimalLatencyFw": 2)", R"("optimalLatencyFw": 1e-320)"),
       "optimalLatencyFw: is next to nothing; give 0 or at least 1e-60"},
      {with(R"("mbsInBatch": 4)", R"("mbsInBatch": 0.5)"), "mbsInBatch: expected an integer"},
      {with(R"("maxMemoryPerDevice": 40)", R"("maxMemoryPerDevice": NaN)"),
       "NaN is not a number in JSON"},
      {with(R"("bandwidth": 8000)", R"("bandwidth": 0)"), "bandwidth: 0 is out of range"},
      {with(R"("nodes": {"1": [)", R"("nodes": {}, "ignored": {"1": [)"),
       "nodes: there are no layers"},
      {with(R"("nodes": {"1": [)", R"("nodes": {"1": [], "2": [)"), "nodes.1: there are no layers"},
  };
  for (const auto& [text, part] : cases) {
    write_file(file_, text);
    for (const char* planner : {"phaze", "piper"}) {
      const Ran ran = run_braid({"plan", "--profile", file_, "--planner", planner});
      EXPECT_EQ(ran.status, 2) << part;
      EXPECT_EQ(ran.out, "");
      EXPECT_THAT(ran.err, HasSubstr(part));
      EXPECT_THAT(ran.err, HasSubstr(file_));
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
  }
}

TEST_F(PlanPhaze, SaysWhichStageMissesHowMuch) {
  const Ran ran = run_braid({"plan", "--profile", file_, "--devices", "1", "--memory", "30 B"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("stage 1 of the most frugal one (2 layers from 0 to 1) needs 38 "
                                 "bytes of a device, 8 more than it has"));
}

TEST_F(PlanPhaze, RefusesWhatIsPipers) {
  const std::pair<Words, const char*> cases[] = {
      {{"--planner", "megaton"}, "use one of braid"},
      {{"--planner", "piper", "--objective", "flush"}, "is for the planner phaze"},
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
