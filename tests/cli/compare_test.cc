#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::run_braid;

TEST(CompareVerb, RunsAllPlannersOnOneJob) {
  const Ran ran =
      run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch", "8", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["model"], "gpt2");
  EXPECT_EQ(json["system"], "dgx-h100");
  EXPECT_EQ(json["devices"], 4);
  EXPECT_EQ(json["global_batch"], 8);
  EXPECT_EQ(json["seq_len"], 1024);
  EXPECT_EQ(json["precision"], "bf16");
  std::set<std::string> names;
  double braid_s = 0;
  for (const auto& row : json["rows"]) {
    names.insert(row["planner"]);
    if (row["planner"] == "braid") braid_s = row["iteration_time_s"];
    EXPECT_TRUE(row["verified"]) << row["planner"];
    EXPECT_GT(row["peak_memory_bytes"], 0);
    EXPECT_GT(row["objective"]["value"], 0);
    EXPECT_NE(row["objective"]["name"], "");
    EXPECT_GE(row["search_s"], 0);
    EXPECT_LE(row["lower_bound_s"], row["iteration_time_s"]);
    EXPECT_LE(braid_s, double{row["iteration_time_s"]} * (1 + 1e-9)) << row["planner"];
    EXPECT_NEAR(row["of_best"], double{row["iteration_time_s"]} / braid_s, 1e-9) << row["planner"];
    // Proven is what its own bound meets.
    const nlohmann::json& bound = row["objective"]["bound"];
    EXPECT_EQ(row["status"] == "optimal",
              !bound.is_null() && double{bound} >= double{row["objective"]["value"]} * (1 - 1e-9))
        << row["planner"];
    EXPECT_EQ(row["stages"].size(), row["parallel"]["pp"]) << row["planner"];
    if (row["uniform"]) {
      EXPECT_EQ(row["stages"][0]["dp"], row["parallel"]["dp"]) << row["planner"];
    }
    EXPECT_FALSE(row["assumptions"].empty());
  }
  for (const char* name :
       {"braid", "piper", "no-dp", "no-tp", "no-ar", "equi", "equi-no-tp", "pipedream", "graphpipe",
        "amp", "amp-sa", "phaze", "megatron", "random"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
  EXPECT_EQ(names.count("exhaustive"), 0U);
}

TEST(CompareVerb, ListsWhoDoesNotTakeTheJob) {
  const Ran ran = run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch", "8",
                             "--cp", "2", "--planners", "braid,amp"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("refused"));
  EXPECT_THAT(ran.out, HasSubstr("amp: --cp: the amp planner cannot do that"));
  // Every row of the JSON has every key.
  const Ran as_json = run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch",
                                 "8", "--cp", "2", "--planners", "braid,amp", "--json"});
  const auto rows = nlohmann::json::parse(as_json.out)["rows"];
  for (const auto& [key, value] : rows[0].items()) EXPECT_TRUE(rows[1].contains(key)) << key;
  EXPECT_EQ(rows[1]["status"], "refused");
  EXPECT_FALSE(rows[1]["verified"]);
  EXPECT_THAT(rows[1]["reason"], HasSubstr("the amp planner cannot do that"));
  // Nobody is left.
  const Ran none = run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch", "8",
                              "--cp", "2", "--planners", "amp,phaze"});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("the amp planner cannot do that"));
}

TEST(CompareVerb, SaysWhoFindsNothingAndWhatTheFiguresRestOn) {
  const Ran ran = run_braid({"compare", "gpt2-xl", "--cluster", "p3.8xlarge:4", "--precision",
                             "fp16", "--planners", "dp-only,piper,phaze"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("gpt2-xl on p3.8xlarge: 4 × v100-sxm-16gb; global batch 64, 1024 "
                                 "tokens each, fp16, run by ideal\n"));
  EXPECT_THAT(ran.out, HasSubstr("Without a plan:\n  dp-only: "));
  EXPECT_THAT(ran.out, HasSubstr("more than there is\nAssumed:\n  global batch: 16"));
  EXPECT_THAT(ran.out, HasSubstr("a device (piper)\n"));
  // No plan splits the context or experts, or interleaves.
  EXPECT_THAT(ran.out, Not(HasSubstr("  CP  ")));
}

TEST(CompareVerb, TakesTheClustersLevelsForPiper) {
  const Ran ran = run_braid({"compare", "gpt2-xl", "--cluster", "p3.8xlarge:32", "--precision",
                             "fp16", "--planners", "piper,equi", "--network", "levels"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("4 devices at 21.2 GB/s, 8 of these at 1.25 GB/s"));
  EXPECT_THAT(ran.out, HasSubstr("equi: equi takes the network as flat; leave out --network"));
  const Ran other = run_braid({"plan", "gpt2", "--cluster", "dgx-h100:16", "--network", "levels"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("--network: is for piper, no-dp"));
}

TEST(CompareVerb, TakesPhazesObjective) {
  const auto phaze = [](const char* objective) {
    const Ran ran = run_braid({"compare", "gpt2-xl", "--cluster", "p3.8xlarge:32", "--precision",
                               "fp16", "--planners", "phaze", "--objective", objective, "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out)["rows"][0]["objective"];
  };
  const auto flush = phaze("flush"), simulated = phaze("simulated"), program = phaze("program");
  for (const auto& [chosen, key] :
       {std::pair(flush, "flush_s"), {simulated, "simulated_s"}, {program, "program_s"}}) {
    EXPECT_EQ(chosen["value"], chosen["times"][key]);
    for (const auto& other : {flush, simulated, program}) {
      EXPECT_LE(chosen["value"], double{other["times"][key]} * (1 + 1e-9)) << key;
    }
  }
  const Ran ran = run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--planners",
                             "braid,amp", "--objective", "flush"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("--objective: is for the planner phaze"));
}

}  // namespace
}  // namespace braid
