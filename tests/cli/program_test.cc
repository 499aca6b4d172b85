#include "cli/program.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program_here.h"
#include "support/source_path.h"

namespace braid {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_braid;
using test::run_braid_here;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kModel = test::source_path("examples/llama-3-70b/config.json");

/// A small search on the real model, with more words.
Words plan_words(const Words& more = {}) {
  Words words = {"plan",      kModel, "--cluster", "dgx-h100:64", "--global-batch", "256",
                 "--seq-len", "8192", "--pp",      "4",           "--tp",           "8",
                 "--cp",      "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json parsed(const Ran& ran) {
  json value = json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(value.is_object()) << ran.out;
  return value;
}

TEST(Program, PlansSimulatesVerifiesExportsAndReports) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Ran planned = run_braid(plan_words({"--top", "3", "-o", plan}));
  ASSERT_EQ(planned.status, 0) << planned.err;
  for (const char* column : {"GPUs", "GBS", "MBS", "TP", "PP", "DP", "ZeRO", "MFU", "gap"}) {
    EXPECT_THAT(planned.out, HasSubstr(column));
  }
  for (const char* part : {"Where the time goes", "compute", "Memory of the tightest stage",
                           "activations", "Assumed", "braid export"}) {
    EXPECT_THAT(planned.out, HasSubstr(part));
  }
  const Ran verified = run_braid({"verify", plan, "--json"});
  EXPECT_EQ(verified.status, 0) << verified.out;
  const json checks = parsed(verified);
  EXPECT_TRUE(checks["holds"]);
  EXPECT_EQ(checks["checks"].size(), 10U);

  const Ran simulated = run_braid({"simulate", plan, "--json", "--trace", folder / "trace.json"});
  EXPECT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_GE(parsed(simulated)["iteration_time_s"].get<double>(),
            checks["lower_bound_s"].get<double>());
  EXPECT_TRUE(json::accept(read_file(folder / "trace.json")));

  const std::vector<std::pair<std::string, std::string>> batches{
      {"megatron", "--global-batch-size 256"},
      {"deepspeed", "\"train_micro_batch_size_per_gpu\": "},
      {"torchtitan", "global_batch_size = 256"}};
  for (const auto& [target, batch] : batches) {
    const Ran exported = run_braid({"export", plan, "--to", target});
    EXPECT_EQ(exported.status, 0) << exported.err;
    EXPECT_THAT(exported.out, HasSubstr(batch)) << target;
  }
  EXPECT_EQ(run_braid({"report", plan, "-o", folder / "r.html"}).status, 0);
  EXPECT_THAT(read_file(folder / "r.html"), HasSubstr("</html>"));
}

TEST(Program, PlanPrintsOneJsonObjectWithThePromisedFields) {
  const Ran ran = run_braid(plan_words({"--json", "--top", "3"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json out = parsed(ran);
  for (const char* key :
       {"status", "planner", "iteration_time_s", "lower_bound_s", "gap", "mfu", "tokens_per_s",
        "peak_memory_bytes", "search", "objective", "parallel", "stages", "alternatives"}) {
    EXPECT_TRUE(out.contains(key)) << key;
  }
  for (const char* key : {"wall_s", "work", "evaluated"}) EXPECT_TRUE(out["search"].contains(key));
  for (const char* key : {"tp", "pp", "dp", "cp", "ep", "micro_batch", "num_micro_batches",
                          "schedule", "recompute", "zero"}) {
    EXPECT_TRUE(out["parallel"].contains(key)) << key;
  }
  for (const char* key : {"layers", "devices", "dp", "tp", "time_s", "memory_bytes"}) {
    EXPECT_TRUE(out["stages"][0].contains(key)) << key;
  }
  EXPECT_EQ(out["stages"].size(), 4U);
  EXPECT_GE(out["iteration_time_s"].get<double>(), out["lower_bound_s"].get<double>());
  // The gap is the search's own, as in the table: nothing is left of it where the plan is proven.
  const json& fastest = out["fastest"].is_null() ? out : out["fastest"];
  EXPECT_NEAR(out["gap"].get<double>(),
              1 - fastest["iteration_time_s"].get<double>() / out["iteration_time_s"].get<double>(),
              1e-9);
  EXPECT_EQ(out["status"], "optimal");
}

TEST(Program, ComparePrintsARowForEachPlanner) {
  Words words = plan_words({"--json", "--planners", "braid,megatron"});
  words[0] = "compare";
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json rows = parsed(ran)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  for (const json& row : rows) {
    for (const char* key : {"planner", "status", "objective", "iteration_time_s",
                            "peak_memory_bytes", "lower_bound_s", "search_s", "verified"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
  }
  EXPECT_LE(rows[0]["iteration_time_s"].get<double>(), rows[1]["iteration_time_s"].get<double>());
}

TEST(Program, OneByteShortIsInfeasible) {
  // All choices fixed, so that there is one configuration and one need.
  const Words fixed = {"--pp",
                       "1",
                       "--dp",
                       "8",
                       "--vp",
                       "1",
                       "--micro-batch",
                       "1",
                       "--recompute",
                       "full",
                       "--zero",
                       "1",
                       "--sequence-parallel",
                       "on",
                       "--no-offload",
                       "--json"};
  const auto words_with = [&](const Words& more) {
    Words words = {"plan",      kModel, "--cluster", "dgx-h100:64", "--global-batch", "256",
                   "--seq-len", "2048", "--tp",      "8",           "--cp",           "1"};
    words.insert(words.end(), fixed.begin(), fixed.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Ran free = run_braid(words_with({}));
  ASSERT_EQ(free.status, 0) << free.err;
  const auto needed = static_cast<std::int64_t>(parsed(free)["peak_memory_bytes"].get<double>());
  const auto with = [&](std::int64_t bytes) {
    return run_braid(words_with({"--max-memory", std::to_string(bytes) + " B"}));
  };
  EXPECT_EQ(with(needed + 1).status, 0);
  const Ran shorter = with(needed - 1);
  EXPECT_EQ(shorter.status, 1) << shorter.err;
}

/// What braid tune knows of a plan that was not measured is what braid plan prints of it.
TEST(Program, PlanAndTuneHaveOneInterval) {
  const auto told = [](const char* verb, const char* further) {
    return parsed(run_braid({verb, "gpt3-1.3b", "--cluster", "dgx-a100:8", "--global-batch", "64",
                             "--seq-len", "2048", "--top", "2", "--json", further}));
  };
  const auto plan = told("plan", "--fastest")["confidence"]["iteration_time_s"];
  const auto tuned = told("tune", "--no-offload")["plans"][0]["interval_s"];
  ASSERT_EQ(plan.size(), 2);
  for (const std::size_t end : {0, 1}) {
    EXPECT_NEAR(tuned[end].get<double>(), plan[end].get<double>(), 1e-9);
  }
}

TEST(Program, ResultsDoNotDependOnThreads) {
  const TemporaryFolder folder;
  std::vector<std::string> plans;
  std::vector<std::string> tables;
  for (const char* threads : {"1", "2", "8"}) {
    const std::string file = folder / "plan.json";
    const Ran ran = run_braid(plan_words({"--threads", threads, "-o", file, "--top", "5"}));
    ASSERT_EQ(ran.status, 0) << ran.err;
    plans.push_back(read_file(file));
    tables.push_back(ran.out);
  }
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[0], plans[2]);
  EXPECT_EQ(tables[0], tables[1]);
  EXPECT_EQ(tables[0], tables[2]);
}

TEST(Program, ListsAndShowsEverythingItLists) {
  for (const char* what : {"models", "chips", "clusters", "planners"}) {
    const Ran plain = run_braid_here({"list", what});
    EXPECT_EQ(plain.status, 0) << what;
    const json all = parsed(run_braid_here({"list", what, "--json"}));
    for (const json& entry : all[what]) {
      const std::string name = entry["name"];
      EXPECT_THAT(plain.out, HasSubstr(name));
      EXPECT_EQ(run_braid_here({"show", name}).status, 0) << name;
      EXPECT_TRUE(json::accept(run_braid_here({"show", name, "--json"}).out)) << name;
    }
  }
}

TEST(Program, AwkwardDeviceCountsAreAnsweredNotCrashed) {
  for (const char* cluster : {"dgx-h100:1", "dgx-h100:7", "dgx-h100:13", "dgx-h100:9"}) {
    const Ran ran = run_braid({"plan", kModel, "--cluster", cluster, "--global-batch", "91",
                               "--seq-len", "2048", "--json"});
    EXPECT_TRUE(ran.status == 0 || ran.status == 1) << cluster << ": " << ran.err;
    parsed(ran);
  }
}

TEST(Program, SpentBudgetIsSaid) {
  const Ran ran = run_braid({"plan", kModel, "--cluster", "dgx-h100:64", "--global-batch", "256",
                             "--seq-len", "8192", "--budget", "1", "--json"});
  EXPECT_TRUE(ran.status == 0 || ran.status == 3) << ran.status << ran.err;
  EXPECT_NE(parsed(ran)["status"], "optimal");
}

}  // namespace
}  // namespace braid
