#include "cli/program.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "braid/base/file.h"

#include "base/temporary_folder.h"

namespace braid {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;
using testing::run_braid;
using Words = std::vector<std::string>;

const std::string kModel = BRAID_SOURCE_DIR "/examples/llama-3-70b/config.json";

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

TEST(Program, HelpHasAnExampleForEachVerb) {
  const Ran help = run_braid({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* verb : {"plan", "compare", "profile", "simulate", "verify", "export", "report",
                           "validate", "calibrate", "map", "explore", "list", "show"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + verb));
    const Ran ran = run_braid({verb, "--help"});
    EXPECT_EQ(ran.status, 0) << verb;
    EXPECT_THAT(ran.out, HasSubstr(std::string("Example:\n  braid ") + verb));
  }
  const Ran version = run_braid({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.rfind("braid ", 0), 0U);
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

  for (const char* target : {"megatron", "deepspeed", "torchtitan"}) {
    const Ran exported = run_braid({"export", plan, "--to", target});
    EXPECT_EQ(exported.status, 0) << exported.err;
    EXPECT_THAT(exported.out, HasSubstr("256")) << target;
  }
  EXPECT_EQ(run_braid({"report", plan, "-o", folder / "r.html"}).status, 0);
  EXPECT_THAT(read_file(folder / "r.html"), HasSubstr("</html>"));
}

TEST(Program, PlansOfEveryFamilyHold) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const std::vector<std::vector<std::string>> jobs = {
      {"bert-large", "dgx-h100:8", "64", "--tp", "2"},
      {"t5-large", "dgx-h100:8", "64", "--pp", "4"},  // Every stage reads the encoder's output.
      {"vit-large", "dgx-h100:8", "64", "--pp", "2"},
      {"gemma-2-9b", "dgx-h100:16", "64", "--tp", "4", "--micro-batch", "1"},
      {"deepseek-v3", "dgx-h100:512", "512", "--seq-len", "4096", "--tp", "1", "--pp", "16", "--cp",
       "1", "--ep", "32", "--micro-batch", "1"},
      {"resnet-50", "dgx-a100:8", "256", "--pp", "4", "--micro-batch", "16"},
      {"gnmt", "dgx-a100:8", "256", "--pp", "2", "--micro-batch", "32"},
      {"dlrm-thesis", "dgx-a100:8", "512", "--tp", "2", "--pp", "2"},  // Branches cross stages.
      {"candle-uno", "dgx-a100:8", "512", "--pp", "8", "--micro-batch", "64"},
      {"multi-modal-transformer", "dgx-a100:8", "64", "--tp", "2", "--pp", "4"},
      {"transgan", "dgx-a100:8", "64", "--tp", "2", "--pp", "2"},
  };
  for (const std::vector<std::string>& job : jobs) {
    std::vector<std::string> words = {"plan",           job[0], "--cluster", job[1],
                                      "--global-batch", job[2], "-o",        plan};
    words.insert(words.end(), job.begin() + 3, job.end());
    const Ran planned = run_braid(words);
    ASSERT_EQ(planned.status, 0) << planned.err;
    const Ran verified = run_braid({"verify", plan});
    EXPECT_EQ(verified.status, 0) << job[0] << verified.out;
  }
  const Ran images =
      run_braid({"plan", "vit-large", "--cluster", "dgx-h100:8", "--seq-len", "128", "-o", plan});
  EXPECT_EQ(images.status, 2);
  EXPECT_THAT(images.err, HasSubstr("--seq-len"));
  const Ran samples = run_braid({"plan", "resnet-50", "--cluster", "dgx-a100:8"});
  EXPECT_THAT(samples.out, HasSubstr("samples/s/GPU"));
  EXPECT_EQ(samples.out.find("tok/s"), std::string::npos);
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
  EXPECT_NEAR(out["gap"].get<double>(),
              1 - out["lower_bound_s"].get<double>() / out["iteration_time_s"].get<double>(), 1e-9);
}

TEST(Program, StandardOutputHoldsOneThing) {
  const Ran ran = run_braid(plan_words({"-o", "-", "--json"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(parsed(ran)["braid"], "plan");
  const Ran shown = run_braid(plan_words({"--progress", "--json"}));
  EXPECT_EQ(parsed(shown)["planner"], "braid");
  EXPECT_THAT(shown.err, HasSubstr("bound"));
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

TEST(Program, SaysHowManyBytesAreMissing) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Ran ran = run_braid(plan_words({"--max-memory", "1 GiB", "-o", plan, "--no-offload"}));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("stage"));
  EXPECT_THAT(ran.err, HasSubstr("1073741824"));
  EXPECT_EQ(folder.size(), 0U);
  const Ran as_json = run_braid(plan_words({"--max-memory", "1 GiB", "--no-offload", "--json"}));
  EXPECT_EQ(as_json.status, 1);
  EXPECT_EQ(parsed(as_json)["status"], "infeasible");
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

TEST(Program, OutputFilesAppearWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const Ran ran = run_braid(plan_words({"-o", folder / "no-such-folder/plan.json"}));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(folder.size(), 0U);
  EXPECT_EQ(run_braid(plan_words({"-o", folder.path()})).status, 2);
  EXPECT_EQ(folder.size(), 0U);
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
    const Ran plain = run_braid({"list", what});
    EXPECT_EQ(plain.status, 0) << what;
    const json all = parsed(run_braid({"list", what, "--json"}));
    for (const json& entry : all[what]) {
      const std::string name = entry["name"];
      EXPECT_THAT(plain.out, HasSubstr(name));
      EXPECT_EQ(run_braid({"show", name}).status, 0) << name;
      EXPECT_TRUE(json::accept(run_braid({"show", name, "--json"}).out)) << name;
    }
  }
}

TEST(Program, ShowsPublishedParameterCount) {
  const json model = parsed(run_braid({"show", kModel, "--json"}));
  EXPECT_NEAR(model["parameters"].get<double>(), 70.55e9, 0.05e9);  // model card of Llama 3 70B
}

TEST(Program, ShowsWhereAZooModelComesFrom) {
  EXPECT_THAT(run_braid({"show", "dlrm-thesis"}).out, HasSubstr("thesis"));
  const json model = parsed(run_braid({"show", "gnmt", "--json"}));
  EXPECT_THAT(model["description"].get<std::string>(), HasSubstr("Wu et al. 2016"));
}

TEST(Program, AwkwardDeviceCountsAreAnsweredNotCrashed) {
  for (const char* cluster : {"dgx-h100:1", "dgx-h100:7", "dgx-h100:13", "dgx-h100:9"}) {
    const Ran ran = run_braid({"plan", kModel, "--cluster", cluster, "--global-batch", "91",
                               "--seq-len", "2048", "--json"});
    EXPECT_TRUE(ran.status == 0 || ran.status == 1) << cluster << ": " << ran.err;
    parsed(ran);
  }
}

TEST(Program, ComparesWithTheProgressOfEachPlanner) {
  Words words = plan_words({"--planners", "braid,exhaustive", "--progress"});
  words[0] = "compare";
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("exhaustive  best "));
  words.pop_back();
  EXPECT_EQ(run_braid(words).err, "");
}

TEST(Program, SaysThatAPlanRestsOnTheHostsMemory) {
  Words words = plan_words({"--max-memory", "40 GiB", "--zero", "1", "--recompute", "none"});
  const Ran with = run_braid(words);
  ASSERT_EQ(with.status, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("  offload: the best plan keeps "));
  words.emplace_back("--no-offload");
  EXPECT_THAT(run_braid(words).out, Not(HasSubstr("offload")));
}

TEST(Program, PlansDataflowChipsByTheMappingOfTheirLayers) {
  const Ran ran = run_braid({"plan", "gpt2", "--cluster", "sn40l-16:2", "--global-batch", "8",
                             "--seq-len", "256", "--no-offload"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("  sn40l: layers run by the best mapping of their kernels"));
}

TEST(Program, SpentBudgetIsSaid) {
  const Ran ran = run_braid({"plan", kModel, "--cluster", "dgx-h100:64", "--global-batch", "256",
                             "--seq-len", "8192", "--budget", "1", "--json"});
  EXPECT_TRUE(ran.status == 0 || ran.status == 3) << ran.status << ran.err;
  EXPECT_NE(parsed(ran)["status"], "optimal");
}

TEST(Program, SaysWhereATrainerCannotDealLayersOut) {
  for (const char* planner : {"braid", "exhaustive"}) {
    for (const char* vp : {"1", "2"}) {
      const Ran ran = run_braid({"plan", "llama-3-8b", "--cluster", "dgx-h100:40", "--global-batch",
                                 "80", "--for", "megatron-2021", "--tp", "8", "--pp", "5", "--vp",
                                 vp, "--planner", planner});
      EXPECT_EQ(ran.status, 1) << planner << " " << vp;
      EXPECT_THAT(ran.err, HasSubstr("no split deals the layers out evenly, as the trainer does"))
          << planner << " " << vp;
    }
  }
}

}  // namespace
}  // namespace braid
