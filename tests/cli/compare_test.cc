#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;

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
  EXPECT_EQ(names.count("megatron-rule"), 0U);
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
}

}  // namespace
}  // namespace braid
