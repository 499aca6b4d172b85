#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

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

/// Two layers in a chain in Piper's format, 6 and 2 time units, 4 bytes between; the first may save
/// memory for half as much time again.
const char* const kChain = R"({"maxMemoryPerDevice": 100, "maxDevices": 4, "bandwidth": 8,
  "mbsInBatch": 4,
  "nodes": [
    {"id": 1, "name": "head", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 2,
      "parameterSize": 0, "memoryUsageA": 1, "memoryUsageB": 0, "syncTimeFw": {"0": 0},
      "syncTimeBw": {}}]}},
    {"id": 0, "name": "body", "TMPCs": {"1": [
      {"id": "vanilla", "timePerSample": 6, "parameterSize": 0, "memoryUsageA": 10,
       "memoryUsageB": 0, "syncTimeFw": {}, "syncTimeBw": {"1": 0}},
      {"id": "activation recomp", "timePerSample": 9, "parameterSize": 0, "memoryUsageA": 3,
       "memoryUsageB": 0, "syncTimeFw": {}, "syncTimeBw": {"1": 0}}]}}],
  "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 4}]})";

class PlanProfile : public ::testing::Test {
 protected:
  void SetUp() override { write_file(file_, kChain); }

  nlohmann::json plan(const Words& more, int status = 0) {
    Words words = {"plan", "--profile", file_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, status) << ran.err;
    return nlohmann::json::parse(ran.out);
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "chain.json";
};

TEST_F(PlanProfile, FindsTheBestByPipersObjective) {
  // One stage on 4 devices: 8/4. No cut beats it.
  const auto printed = plan({});
  EXPECT_EQ(printed["status"], "optimal");
  EXPECT_EQ(printed["planner"], "piper");
  EXPECT_EQ(printed["objective"]["name"], "time per sample");
  EXPECT_EQ(printed["objective"]["unit"], "s");
  EXPECT_EQ(printed["objective"]["of"], "one micro-batch of the profile");
  EXPECT_EQ(printed["objective"]["value"], 2.0);
  EXPECT_EQ(printed["lower_bound"], 2.0);
  ASSERT_EQ(printed["stages"].size(), 1U);
  EXPECT_EQ(printed["stages"][0]["dp"], 4);
  EXPECT_EQ(printed["stages"][0]["tp"], 1);
  EXPECT_EQ(printed["stages"][0]["layers"], "0-1");
  EXPECT_EQ(printed["stages"][0]["memory_bytes"], 11.0);
}

TEST_F(PlanProfile, ComesFromStandardInputToo) {
  const auto of_file = plan({});
  const Ran ran = testing::run_program(
      {"/bin/sh", "-c", "'" BRAID_PROGRAM "' plan --profile - --json < '" + file_ + "'"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto printed = nlohmann::json::parse(ran.out);
  EXPECT_EQ(printed["objective"], of_file["objective"]);
  EXPECT_EQ(printed["iteration_time_s"], of_file["iteration_time_s"]);
  EXPECT_EQ(printed["stages"], of_file["stages"]);
}

TEST_F(PlanProfile, SaysWhatTimesAreOfAndHowFarItIs) {
  Ran ran = run_braid({"plan", "--profile", file_, "--progress"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("A sample is one micro-batch of the profile; its times count as "
                                 "seconds, whatever they are in (no --time-unit given)\n"));
  EXPECT_THAT(ran.err, HasSubstr("best     2.00 s  bound     2.00 s  gap    0.00%"));
  ran = run_braid({"plan", "--profile", file_, "--time-unit", "ms"});
  EXPECT_THAT(ran.out, HasSubstr("A sample is one micro-batch of the profile\n"));
  EXPECT_EQ(ran.err, "");
}

TEST_F(PlanProfile, ReadsTimesInTheUnitThatAProfileStates) {
  const std::string profile = run_braid({"profile", "gpt2", "--chip", "v100-sxm-16gb"}).out;
  const std::string seconds = "\"time_unit_s\": 1.0";
  const std::size_t unit = profile.find(seconds);
  ASSERT_NE(unit, std::string::npos);
  const auto write = [&](const char* value) {
    write_file(file_, std::string(profile).replace(unit + 15, 3, value));
  };
  const Words job = {"--devices", "4",      "--bandwidth",        "1 GB/s",
                     "--memory",  "16 GiB", "--max-microbatches", "16"};
  const auto with = [&](const Words& more) {
    Words words = job;
    words.insert(words.end(), more.begin(), more.end());
    return plan(words);
  };
  write("1.0");
  const auto of_seconds = with({})["objective"];
  const auto told = with({"--time-unit", "ms"})["objective"];
  EXPECT_EQ(of_seconds["unit"], "s");
  write("1e-3");
  const auto stated = with({})["objective"];
  EXPECT_EQ(stated["unit"], "ms");
  EXPECT_EQ(stated["value"], told["value"]);
  EXPECT_NE(stated["value"], of_seconds["value"]);
  EXPECT_EQ(with({"--time-unit", "s"})["objective"]["value"], of_seconds["value"]);
  Words text = {"plan", "--profile", file_};
  text.insert(text.end(), job.begin(), job.end());
  EXPECT_THAT(run_braid(text).out, HasSubstr("A sample is one micro-batch of the profile\n"));
  write("0.5");
  const Ran odd = run_braid(text);
  EXPECT_EQ(odd.status, 2);
  EXPECT_THAT(odd.err, HasSubstr("time_unit_s: is no second, millisecond or microsecond; write 1"));
}

TEST_F(PlanProfile, PipelinesWhenReplicasAreNotAllowed) {
  // The border costs 2·4/8 on both sides.
  const auto printed = plan({"--planner", "no-dp"});
  EXPECT_EQ(printed["objective"]["value"], 7.0);
  ASSERT_EQ(printed["stages"].size(), 2U);
  EXPECT_EQ(printed["stages"][0]["memory_bytes"], 20.0);
}

TEST_F(PlanProfile, PhazePlacesPipersProfiles) {
  // Four replicas of one micro-batch each; nothing to synchronise.
  const auto printed = plan({"--planner", "phaze"});
  EXPECT_EQ(printed["status"], "optimal");
  EXPECT_NEAR(printed["objective"]["value"], 8, 1e-12);
  EXPECT_EQ(printed["dp"], 4);
  // Recomputing adds half to the first layer: its forward pass. A third of the second is.
  EXPECT_NEAR(printed["stages"][0]["forward_s"], 3 + 2.0 / 3, 1e-12);
  EXPECT_EQ(printed["memory_bytes"], 100);
  EXPECT_EQ(printed["assumptions"].size(), 1U);
  EXPECT_FALSE(printed.contains("program") && !printed["program"].is_null());
  EXPECT_NEAR(plan({"--planner", "phaze", "--time-unit", "ms"})["objective"]["value"], 8e-3, 1e-12);
  EXPECT_THAT(plan({"--planner", "phaze", "--memory", "9 B"}, 1)["reason"],
              HasSubstr("layer body 0 alone needs 1 bytes more than a device has"));
}

/// Eighteen layers side by side can be cut in 2^18 ways. Five devices hold three of them each.
TEST_F(PlanProfile, PhazeSaysWhatIsShortWhereThereAreTooManyCuts) {
  std::string nodes;
  for (int i = 0; i < 18; ++i) {
    nodes += (i > 0 ? "," : "") + std::string(R"({"id": )") + std::to_string(i) +
             R"(, "name": "side", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 3,
               "parameterSize": 0, "memoryUsageA": 1, "memoryUsageB": 3, "syncTimeFw": {},
               "syncTimeBw": {}}]}})";
  }
  write_file(file_, R"({"maxMemoryPerDevice": 15, "maxDevices": 5, "bandwidth": 8, "mbsInBatch": 4,
                       "nodes": [)" +
                        nodes + R"(], "edges": []})");
  const auto phaze = [&](const char* memory) {
    return run_braid({"plan", "--profile", file_, "--planner", "phaze", "--memory", memory});
  };
  const std::tuple<const char*, int, const char*> cases[] = {
      {"3 B", 1, "no plan: layer side 0 alone needs 1 bytes more than a device has"},
      {"14 B", 1, "all layers together hold 72 bytes, 2 more than all devices together"},
      {"15 B", 3, "no plan found: each layer would fit alone, but the stages cut along four"},
      {"15 B", 3, "needs 16 bytes of a device, 1 more than it has"},
      {"16 B", 0, ""}};
  for (const auto& [memory, status, part] : cases) {
    const Ran ran = phaze(memory);
    EXPECT_EQ(ran.status, status) << memory;
    EXPECT_THAT(ran.err, HasSubstr(part)) << memory;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), status == 0 ? 0 : 1) << ran.err;
  }
  EXPECT_EQ(plan({"--planner", "phaze"}, 3)["status"], "budget_exhausted");
}

TEST_F(PlanProfile, RecomputesWhenMemoryIsShort) {
  const auto printed = plan({"--planner", "no-dp", "--memory", "19 B"});
  EXPECT_EQ(printed["objective"]["value"], 8.0);  // One stage after all.
  EXPECT_EQ(plan({"--planner", "no-dp", "--memory", "10 B"})["objective"]["value"], 10.0);
}

TEST_F(PlanProfile, SaysWhatDoesNotFit) {
  const Ran ran = run_braid({"plan", "--profile", file_, "--memory", "2 B"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("body 0 alone needs 3 B on a device, 1 B more than there is"));
  const auto printed = plan({"--memory", "2 B"}, 1);
  EXPECT_EQ(printed["status"], "infeasible");
  EXPECT_EQ(printed["needed_bytes"], 3.0);
  EXPECT_TRUE(printed["objective"]["value"].is_null());
}

TEST_F(PlanProfile, SaysWhatDoesNotFitThePlanner) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"no-ar", "9 B", "body 0 alone needs 10 B on a device, 1 B more than there is"},
      {"no-dp", "3 B", "stage 1 (body 0 to head 1) then needs 4 B, 1 B more than there is"},
      {"pipedream", "9 B", "of the plan made without regard to memory needs"},
      {"equi", "3 B", "stage 1 (body 0 to head 1) then needs 4 B, 1 B more than there is"},
      {"tp-only", "3 B", "stage 1 (body 0 to head 1) then needs 4 B, 1 B more than there is"},
      {"dp-only", "2 B", "body 0 alone needs 3 B on a device, 1 B more than there is"},
  };
  for (const auto& [planner, memory, part] : cases) {
    const Ran ran =
        run_braid({"plan", "--profile", file_, "--memory", memory, "--planner", planner});
    EXPECT_EQ(ran.status, 1) << planner;
    EXPECT_THAT(ran.err, HasSubstr(part)) << planner;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST_F(PlanProfile, RulesChangeTheCost) {
  EXPECT_EQ(plan({"--devices", "3"})["objective"]["value"], 3.5);
  EXPECT_NEAR(plan({"--devices", "3", "--rules", "paper"})["objective"]["value"], 8.0 / 3, 1e-12);
  // ⌈4/3⌉ = 2 of 4 micro-batches: no better than two replicas, but here a pair and a single are.
  EXPECT_EQ(plan({"--devices", "3", "--uneven-microbatches"})["objective"]["value"], 3.5);
  // A byte takes a thousandth of the time when times are in milliseconds.
  EXPECT_EQ(plan({"--planner", "no-dp", "--time-unit", "us"})["status"], "optimal");
}

TEST_F(PlanProfile, PlansOnLevelsOfANetwork) {
  // Nodes of two devices, joined by a network that is better left alone: each node has the whole
  // chain, one copy on each device.
  const auto apart = plan({"--levels", "2@8B/s,2@0.001B/s"});
  EXPECT_EQ(apart["objective"]["value"], 2.0);
  EXPECT_EQ(apart["devices"], 4);
  EXPECT_EQ(apart["levels"].size(), 2U);
  ASSERT_EQ(apart["stages"].size(), 1U);
  EXPECT_EQ(apart["stages"][0]["dp"], 4);
  EXPECT_EQ(apart["stages"][0]["local_dp"], 2);
  ASSERT_EQ(apart["superstages"].size(), 1U);
  EXPECT_EQ(apart["superstages"][0]["level"], 2);
  EXPECT_EQ(apart["superstages"][0]["dp"], 2);
  EXPECT_EQ(plan({"--levels", "4@8B/s"})["objective"]["value"], 2.0);
  // Between nodes the tensor takes 2·4/0.5, more than the work: all layers on one node, the first
  // one twice for memory's sake. Where it takes 2·4/4 they part.
  const auto with = [&](const char* levels, const char* memory) {
    return plan({"--levels", levels, "--planner", "no-dp", "--memory", memory});
  };
  EXPECT_EQ(with("1@8B/s,2@0.5B/s", "10 B")["objective"]["value"], 11.0);
  EXPECT_EQ(with("1@8B/s,2@4B/s", "10 B")["objective"]["value"], 10.0);
  EXPECT_EQ(with("1@8B/s,2@4B/s", "20 B")["objective"]["value"], 7.0);
  const Ran ran = run_braid({"plan", "--profile", file_, "--levels", "2@8B/s,2@0.001B/s"});
  EXPECT_THAT(ran.out, HasSubstr("on levels 2@8B/s,2@0.001B/s"));
  EXPECT_THAT(ran.out, HasSubstr("2x2=4"));
  const Ran none =
      run_braid({"plan", "--profile", file_, "--levels", "2@8B/s,2@1B/s", "--memory", "2B"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("body 0 alone needs 3 B on a device, 1 B more than there is"));
}

TEST_F(PlanProfile, DegreesMaySumToExactlyTheMicroBatches) {
  // Three devices cannot hold degrees that sum to four; two micro-batches take two of them.
  const auto printed = plan({"--devices", "3", "--sum-of-dp", "exact"}, 1);
  EXPECT_THAT(printed["reason"].get<std::string>(), HasSubstr("sum to exactly 4"));
  const auto two = plan({"--devices", "3", "--max-microbatches", "2", "--sum-of-dp", "exact"});
  EXPECT_EQ(two["sum_of_dp"], 2);
  EXPECT_EQ(two["objective"]["value"], 4.0);
}

TEST_F(PlanProfile, WritesTheTable) {
  const Ran ran = run_braid({"plan", "--profile", file_, "--devices", "2", "--table", "-"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "devices,sum_of_dp,time\n1,1,8\n2,1,8\n2,2,4\n");
}

TEST_F(PlanProfile, ReadsWhatBraidProfileWrites) {
  const std::string written = folder_ / "gpt2.json";
  ASSERT_EQ(run_braid({"profile", "gpt2", "--cluster", "dgx-h100:8", "--tp", "1,2", "-o", written})
                .status,
            0);
  const Words words = {"plan",     "--profile", written,       "--devices", "8",
                       "--memory", "80 GB",     "--bandwidth", "100 GB/s",  "--max-microbatches",
                       "8",        "--planner", "tp-only"};
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Assumed: the profile does not state all memory"));
  // A device's half of 124 million parameters, 18 bytes each, and one micro-batch's activations.
  file_ = written;
  const auto printed = plan(Words(words.begin() + 3, words.end()));
  const double bytes = printed["stages"][0]["memory_bytes"];
  EXPECT_GT(bytes, 18 * 62.2e6);
  EXPECT_LT(bytes, 18 * 62.2e6 + 4e9);
  EXPECT_EQ(printed["assumptions"].size(), 1U);
  const auto phaze =
      plan({"--devices", "8", "--memory", "80 GB", "--bandwidth", "100 GB/s", "--max-microbatches",
            "8", "--planner", "phaze", "--objective", "simulated"});
  EXPECT_EQ(phaze["status"], "optimal");
  EXPECT_THAT(phaze["assumptions"][0], HasSubstr("18 bytes a parameter"));
  EXPECT_GT(phaze["times"]["flush_s"], double{phaze["times"]["simulated_s"]} * (1 - 1e-12));
  const Ran lacking = run_braid({"plan", "--profile", written, "--planner", "phaze"});
  EXPECT_EQ(lacking.status, 2);
  EXPECT_THAT(lacking.err,
              HasSubstr("--devices: is not given, and the profile does not say; add --devices N"));
  EXPECT_TRUE(plan({"--devices", "1", "--memory", "1 GB", "--bandwidth", "1 GB/s",
                    "--max-microbatches", "1"},
                   1)["stages"]
                  .empty());
}

/// Every fault of a profile: one line that names the place, exit status 2, nothing on stdout.
TEST_F(PlanProfile, RefusesBadProfilesInOneLine) {
  const auto in = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return text.replace(place, from.size(), to);
  };
  const auto edges = [&](const std::string& more) {
    return in(kChain, R"("communicationCost": 4})", R"("communicationCost": 4}, )" + more);
  };
  const std::pair<std::string, const char*> cases[] = {
      {edges(R"({"sourceId": 1, "destId": 0, "communicationCost": 1})"),
       "nodes[0]: the layer is on a cycle"},
      {edges(R"({"sourceId": 0, "destId": 7, "communicationCost": 1})"),
       "edges[1].destId: no layer has id 7"},
      {in(kChain, R"("id": 1, "name": "head")", R"("id": 0, "name": "head")"),
       "nodes[1].id: a second layer has id 0"},
      {in(kChain, R"("timePerSample": 6)", R"("timePerSample": -6)"),
       "nodes[1].TMPCs.1[0].timePerSample: -6 is out of range"},
      {in(kChain, R"("communicationCost": 4)", R"("communicationCost": -4)"),
       "edges[0].communicationCost: -4 is out of range"},
      {in(kChain, R"("maxDevices": 4)", R"("maxDevices": 0)"), "maxDevices: 0 is out of range"},
      {in(kChain, R"("mbsInBatch": 4)", R"("mbsInBatch": 0)"), "mbsInBatch: 0 is out of range"},
      {in(kChain, R"("mbsInBatch": 4)", R"("mbsInBatch": 0.5)"), "mbsInBatch: expected an integer"},
      {in(kChain, R"("maxMemoryPerDevice": 100)", R"("maxMemoryPerDevice": NaN)"),
       "NaN is not a number in JSON"},
      {in(kChain, R"("TMPCs": {"1": [{"id": "vanilla", "timePerSample": 2)",
          R"("TMPCs": {"1": []}, "ignored": {"1": [{"id": "vanilla", "timePerSample": 2)"),
       "nodes[0].TMPCs: the layer has no option for any degree"},
  };
  for (const auto& [text, part] : cases) {
    write_file(file_, text);
    const Ran ran = run_braid({"plan", "--profile", file_});
    EXPECT_EQ(ran.status, 2) << part;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(part));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

/// The same of a profile of braid's own, written by `braid profile`.
TEST_F(PlanProfile, RefusesBadProfilesOfItsOwnInOneLine) {
  ASSERT_EQ(run_braid({"profile", "gpt2", "--chip", "h100-sxm", "-o", file_}).status, 0);
  const auto good = nlohmann::json::parse(read_file(file_));
  using Change = std::function<void(nlohmann::json&)>;
  const auto edge = [](int source, int target, double bytes) {
    return [=](nlohmann::json& printed) { printed["edges"].push_back({source, target, bytes}); };
  };
  const std::pair<Change, const char*> cases[] = {
      {edge(1, 0, 5),
       "block0: an edge leads back to an earlier layer: the layer graph has a cycle"},
      {edge(1, 99, 5), "edges[13]: there is no layer 99"},
      {edge(-1, 1, 5), "edges[13][0]: -1 is out of range"},
      {edge(1, 3, -5), "edges[13][2]: -5 is out of range"},
      {[](auto& printed) { printed["kinds"][1] = nlohmann::json::array(); },
       "block0: has no option to run it"},
      {[](auto& printed) { printed["kinds"][1][0]["cost"]["forward"]["compute_s"] = -1; },
       "cost.forward.compute_s: -1 is out of range"},
      {[](auto& printed) { printed["layers"][2][1] = 7; }, "block1: its kind does not exist"},
  };
  for (const auto& [change, part] : cases) {
    nlohmann::json bad = good;
    change(bad);
    write_file(file_, bad.dump());
    for (const char* planner : {"piper", "pipedream", "phaze"}) {
      const Ran ran =
          run_braid({"plan", "--profile", file_, "--planner", planner, "--devices", "8", "--memory",
                     "8 GiB", "--bandwidth", "25 GB/s", "--max-microbatches", "16"});
      EXPECT_EQ(ran.status, 2) << part;
      EXPECT_EQ(ran.out, "");
      EXPECT_THAT(ran.err, HasSubstr(part)) << planner;
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
  }
}

TEST_F(PlanProfile, RefusesWhatDoesNotGoTogether) {
  const std::pair<Words, const char*> cases[] = {
      {{"plan"}, "MODEL is required"},
      {{"plan", "llama-3-8b", "--profile", file_}, "does not go with --profile"},
      {{"plan", "--profile", file_, "--seq-len", "8"}, "does not go with --profile"},
      {{"plan", "--profile", file_, "--cluster", "dgx-h100:8", "--memory", "1 GB"},
       "does not go with --cluster"},
      {{"plan", "--profile", file_, "--cluster", "p3.8xlarge:1nodes+g4dn.12xlarge:1nodes"},
       "a profile is of one kind of device"},
      {{"plan", "--profile", file_, "--tp", "1", "--rules", "paper"}, "by their own rules"},
      {{"plan", "--profile", file_, "--planner", "braid", "--tp", "2"},
       "planner braid needs options of tp 2, micro-batch 1 without recomputation for every layer; "
       "the profile has none for layer body 0"},
      {{"plan", "--profile", file_, "--planner", "braid", "--zero", "1"}, "nothing shards these"},
      {{"plan", "--profile", file_, "--planner", "braid", "--global-batch", "4",
        "--max-microbatches", "4"},
       "does not go with --global-batch"},
      {{"plan", "--devices", "4"}, "goes with --profile only"},
      {{"plan", "--profile", file_, "--devices", "0"}, "--devices"},
      {{"plan", "--profile", file_, "--max-microbatches", "0"}, "--max-microbatches"},
      {{"plan", "--profile", file_, "--memory", "nan"}, "--memory"},
      {{"plan", "--profile", file_, "--bandwidth", "0 GB/s"}, "--bandwidth"},
      {{"plan", "--profile", file_, "--rules", "mine"}, "--rules"},
      {{"plan", "--profile", file_, "--planner", "megatron"},
       "planner megatron needs options of micro-batch 1 with full recomputation for every layer; "
       "the profile has none for layer head 1"},
      {{"plan", "--profile", file_, "--planner", "equi", "--table", "-"}, "--table"},
      {{"plan", "--profile", file_ + "x"}, "x"},
      {{"plan", "--profile", file_, "--objective", "flush"}, "is for the planner phaze"},
      {{"plan", "--profile", file_, "--memory", "1 B", "--memory", "2 B"}, "more than once"},
      {{"plan", "--profile", file_, "--rules", "corrected"}, "use program or paper"},
      {{"plan", "--profile", file_, "--levels", "8"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "8@1GB/s,"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "0@1GB/s"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "-2@1GB/s"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "2x@1GB/s"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "2@nan"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "2@0GB/s"}, "write each level like 8@300GB/s"},
      {{"plan", "--profile", file_, "--levels", "9999999999999999999999@1GB/s"}, "--levels"},
      {{"plan", "--profile", file_, "--levels", "99999@1GB/s,99999@1GB/s"}, "too many devices"},
      {{"plan", "--profile", file_, "--levels", "2@1GB/s", "--devices", "2"}, "--devices"},
      {{"plan", "--profile", file_, "--levels", "2@1GB/s", "--table", "-"}, "--table"},
      {{"plan", "--profile", file_, "--levels", "2@1GB/s", "--planner", "equi"}, "--levels"},
      {{"plan", "--profile", file_, "--levels", "2@1GB/s", "--knapsack", "heuristic"}, "--levels"},
      {{"plan", "gpt2", "--levels", "2@1GB/s"}, "goes with --profile only"},
      {{"plan", "--profile", file_, "--sum-of-dp", "all"}, "--sum-of-dp"},
      {{"plan", "--profile", file_, "--sum-of-dp", "exact", "--table", "-"}, "--sum-of-dp"},
      {{"plan", "--profile", file_, "--sum-of-dp", "exact", "--planner", "equi"}, "--sum-of-dp"},
  };
  for (const auto& [words, part] : cases) {
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 2) << part;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr(part));
  }
}

// Nobody has written how to divide convolutions.
TEST(PlanProfileOfModel, PlansWithDivisionsThatWereFound) {
  const TemporaryFolder folder;
  const std::string file = folder / "profile.json";
  const auto profile = [&](const std::string& sharding) {
    const Ran ran = run_braid({"profile", "resnet-50", "--cluster", "dgx-h100:8", "--tp", "1,8",
                               "--sharding", sharding, "-o", file});
    EXPECT_EQ(ran.status, 0) << ran.err;
  };
  const auto time_on = [&](const std::string& memory, const std::string& planner, int status) {
    const Ran ran =
        run_braid({"plan", "--profile", file, "--devices", "8", "--memory", memory, "--bandwidth",
                   "100GB/s", "--max-microbatches", "8", "--planner", planner, "--json"});
    EXPECT_EQ(ran.status, status) << planner << ran.err;
    const auto printed = nlohmann::json::parse(ran.out);
    return status == 0 ? printed["objective"]["value"].get<double>() : 0;
  };
  profile("written");
  const double roomy_s = time_on("16GB", "piper", 0);
  time_on("100MB", "tp-only", 1);
  profile("found");
  EXPECT_LE(time_on("16GB", "piper", 0), roomy_s);
  EXPECT_GT(time_on("100MB", "tp-only", 0), 0);
  EXPECT_GT(time_on("16GB", "phaze", 0), 0);
  EXPECT_THAT(run_braid({"profile", "resnet-50", "--sharding", "guessed"}).err,
              HasSubstr("--sharding"));
}

// GPT-2 XL has 25 heads.
TEST(PlanOfModel, SaysHowItsLayersAreDivided) {
  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  const std::vector<std::string> job = {
      "gpt2-xl",       "--cluster", "dgx-a100:8", "--seq-len", "1024",           "--tp", "4",
      "--micro-batch", "2",         "--pp",       "1",         "--global-batch", "16"};
  const auto with = [&](const std::string& verb, const std::vector<std::string>& more) {
    std::vector<std::string> words = {verb};
    words.insert(words.end(), job.begin(), job.end());
    words.insert(words.end(), more.begin(), more.end());
    return run_braid(words);
  };
  EXPECT_THAT(with("plan", {}).err, HasSubstr("tp 4 does not divide"));
  const Ran plan = with("plan", {"--sharding", "found", "-o", file});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("48x block0 tp4:sharded"));
  EXPECT_THAT(plan.out, HasSubstr("attention.qkv column"));
  EXPECT_THAT(plan.out, Not(HasSubstr("braid export")));
  EXPECT_EQ(run_braid({"verify", file}).status, 0);
  EXPECT_EQ(run_braid({"simulate", file}).status, 0);
  const Ran page = run_braid({"report", file, "-o", folder / "page.html"});
  EXPECT_EQ(page.status, 0) << page.err;
  EXPECT_THAT(run_braid({"export", file, "--to", "megatron"}).err, HasSubstr("--sharding found"));
  const Ran compare = with("compare", {"--sharding", "found", "--planners", "braid,amp"});
  EXPECT_EQ(compare.status, 0) << compare.err;
}

}  // namespace
}  // namespace braid
