#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::run_braid;

TEST(CompareVerb, RunsAllPlannersOnOneJob) {
  const Ran ran =
      run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch", "8", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
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
  }
  for (const char* name : {"braid", "piper", "no-dp", "no-tp", "no-ar", "equi", "equi-no-tp",
                           "pipedream", "amp", "amp-sa", "phaze", "megatron", "random"}) {
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
  // Nobody is left.
  const Ran none = run_braid({"compare", "gpt2", "--cluster", "dgx-h100:4", "--global-batch", "8",
                              "--cp", "2", "--planners", "amp,phaze"});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("the amp planner cannot do that"));
}

}  // namespace
}  // namespace braid
