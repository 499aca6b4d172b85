#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> job(const std::string& verb, const std::string& model) {
  return {verb, model, "--cluster", "p3.8xlarge:8", "--precision", "fp32", "--global-batch", "32"};
}

/// Plans the multi-modal transformer with what else is asked for into the file.
void plan_multi_modal(const std::string& plan, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = job("plan", "multi-modal-transformer");
  words.insert(words.end(), {"--planner", "graphpipe", "-o", plan});
  words.insert(words.end(), more.begin(), more.end());
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
}

/// What `simulate` says of the plan after a change.
std::string fault_of(const std::string& plan, nlohmann::json changed_plan,
                     const std::string& changed) {
  write_file(changed, changed_plan.dump());
  const Ran ran = run_braid({"simulate", changed});
  EXPECT_EQ(ran.status, 2) << plan;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1);
  return ran.err;
}

TEST(GraphPipe, PlansVerifySimulateAndAreDrawn) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  for (const char* model : {"multi-modal-transformer", "t5-large"}) {
    std::vector<std::string> words = job("plan", model);
    words.insert(words.end(), {"--planner", "graphpipe", "--json", "-o", plan});
    const Ran ran = run_braid(words);
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto out = nlohmann::json::parse(ran.out);
    EXPECT_LE(out["lower_bound_s"], out["iteration_time_s"]);
    EXPECT_EQ(run_braid({"verify", plan}).status, 0) << model;
    const Ran replayed = run_braid({"simulate", plan, "--json", "--trace", folder / "trace.json"});
    ASSERT_EQ(replayed.status, 0) << replayed.err;
    EXPECT_EQ(nlohmann::json::parse(replayed.out)["iteration_time_s"], out["iteration_time_s"]);
    EXPECT_EQ(run_braid({"report", plan, "-o", folder / "plan.html"}).status, 0);
  }
}

TEST(GraphPipe, TheTableSaysWhereStagesHandOver) {
  std::vector<std::string> words = job("plan", "multi-modal-transformer");
  words.insert(words.end(), {"--planner", "graphpipe"});
  const Ran ran = run_braid(words);
  EXPECT_THAT(ran.out, HasSubstr("hands over to"));
  EXPECT_THAT(ran.out, HasSubstr("in flight: micro-batches that a stage has begun"));
}

TEST(GraphPipe, IsNeverBehindItsBaselines) {
  std::vector<std::string> words = job("compare", "multi-modal-transformer");
  words.insert(words.end(), {"--planners", "graphpipe,pipedream,piper", "--json"});
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto rows = nlohmann::json::parse(ran.out)["rows"];
  for (const auto& row : rows) {
    EXPECT_LE(rows[0]["iteration_time_s"], row["iteration_time_s"]) << row["planner"];
  }
}

TEST(GraphPipe, RefusesPlansThatCannotRunNamingTheStage) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1"}));
  const auto good = nlohmann::json::parse(read_file(plan));
  ASSERT_GT(good["stages"].size(), 1U);
  auto uneven = good;
  uneven["stages"][0]["own"]["micro_batch"] = 5;
  EXPECT_THAT(fault_of(plan, uneven, folder / "uneven.json"),
              HasSubstr("stages[0].own.micro_batch: the stage's dp x micro_batch does not divide"));
  auto circle = good;
  std::swap(circle["stages"].front(), circle["stages"].back());
  const auto last = std::to_string(good["stages"].size());
  EXPECT_THAT(fault_of(plan, circle, folder / "circle.json"),
              AllOf(HasSubstr("stage " + last + " (layer"), HasSubstr("hands over to stage "),
                    HasSubstr("which comes earlier in the pipeline")));
}

TEST(GraphPipe, PlansAreTimedByOtherSchedules) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "2", "--inflight", "table"}));
  const Ran own = run_braid({"simulate", plan, "--json"});
  const double own_s = nlohmann::json::parse(own.out)["iteration_time_s"];
  const Ran ran = run_braid({"simulate", plan, "--schedule", "all", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto rows = nlohmann::json::parse(ran.out)["schedules"];
  EXPECT_EQ(rows.size(), 12U);
  EXPECT_EQ(rows[0]["schedule"], "as planned");
  EXPECT_EQ(rows[0]["iteration_time_s"].get<double>(), own_s);
  for (const auto& row : rows) {
    if (row["schedule"] == "1f1b") {
      EXPECT_NEAR(row["iteration_time_s"], own_s, 1e-12 * own_s);
    } else if (row["schedule"] == "zb-v") {
      EXPECT_THAT(row["refusal"].get<std::string>(), HasSubstr("zb-v"));
    }
  }
  // One schedule that the stages cannot run by is the user's mistake.
  const Ran refused = run_braid({"simulate", plan, "--schedule", "zb-v"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("stage "));
  EXPECT_EQ(refused.err.find('\n'), refused.err.size() - 1);
  // Whatever can be timed is drawn, and takes what the table says.
  const std::string trace = folder / "t.json";
  const std::string page = folder / "t.html";
  for (const auto& row : rows) {
    if (row.contains("refusal") || row["schedule"] == "as planned") continue;
    const std::string name = row["schedule"];
    const Ran drawn =
        run_braid({"simulate", plan, "--schedule", name, "--trace", trace, "--html", page});
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_THAT(drawn.out, HasSubstr("Trace written to "));
    EXPECT_THAT(drawn.out, HasSubstr("Page written to "));
    const auto traced = nlohmann::json::parse(read_file(trace));
    EXPECT_EQ(traced["otherData"]["iteration_time_s"], row["iteration_time_s"]) << name;
    std::set<std::string> kinds;
    double peak = 0;
    for (const auto& event : traced["traceEvents"]) {
      if (event.contains("cat")) kinds.insert(event["cat"].get<std::string>());
      if (event["ph"] == "C") peak = std::max(peak, event["args"]["GiB"].get<double>());
    }
    EXPECT_EQ(kinds.count("weight gradient"), name.starts_with("zb-") ? 1U : 0U) << name;
    EXPECT_EQ(kinds.count("backward"), name.starts_with("zb-") ? 0U : 1U) << name;
    const double table_bytes = row["peak_memory_bytes"];
    EXPECT_NEAR(peak, table_bytes / 0x1p30, 1e-6) << name;
    EXPECT_THAT(read_file(page), HasSubstr(" an iteration by " + name)) << name;
  }
  const Ran not_drawn = run_braid({"simulate", plan, "--schedule", "all", "--trace", trace});
  EXPECT_EQ(not_drawn.status, 2);
  EXPECT_EQ(not_drawn.out, "");
  EXPECT_THAT(not_drawn.err, HasSubstr("--schedule: all excludes --trace and --html"));
  EXPECT_EQ(not_drawn.err.find('\n'), not_drawn.err.size() - 1);
  EXPECT_EQ(run_braid({"simulate", plan, "--k", "3"}).status, 2);
  // Each stage may have a k of its own, and the best ones are searched.
  const auto grouped = [&](const std::string& k) {
    const Ran run = run_braid({"simulate", plan, "--schedule", "kfkb", "--k", k, "--json"});
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["schedules"].at(0);
  };
  const auto best = grouped("best");
  std::string listed;
  for (const auto& k : best["k"]) listed += (listed.empty() ? "" : ",") + k.dump();
  EXPECT_EQ(grouped(listed)["iteration_time_s"], best["iteration_time_s"]);
  EXPECT_GT(best["k_tried"], 0);
  EXPECT_LE(best["iteration_time_s"], grouped("2")["iteration_time_s"]);
  for (const auto& [k, why] :
       {std::pair{"1,2", "and k is given for 2"}, std::pair{"1,,2", "--k: '' is no whole number"},
        std::pair{"0", "--k: 0 is out of range"}, std::pair{"bestest", "is no whole number"}}) {
    const Ran run = run_braid({"simulate", plan, "--schedule", "kfkb", "--k", k});
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1);
  }
}

TEST(GraphPipe, TheTimelinesPageShowsTheGraphOfStages) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "2"}));
  const auto stages = nlohmann::json::parse(read_file(plan))["stages"].size();
  ASSERT_EQ(run_braid({"simulate", plan, "--html", folder / "page.html"}).status, 0);
  const std::string page = read_file(folder / "page.html");
  std::size_t rows = 0;
  for (std::size_t at = page.find("\"lane\":"); at != std::string::npos;
       at = page.find("\"lane\":", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, stages);
  EXPECT_THAT(page, HasSubstr("hands over to"));
}

TEST(GraphPipe, RefusesWarmUpsThatWaitForEverNamingTheStage) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1"}));
  auto stages = nlohmann::json::parse(read_file(plan));
  ASSERT_GT(stages["stages"].size(), 1U);
  const std::string last = "stages[" + std::to_string(stages["stages"].size() - 1) + "]";
  auto& warm_up = stages["stages"].back()["own"]["warm_up"];
  for (const int count : {-1, 0}) {
    warm_up = count;
    EXPECT_THAT(fault_of(plan, stages, folder / "bad.json"), HasSubstr(last + ".own.warm_up"));
  }
  warm_up = 1 << 20;
  EXPECT_THAT(fault_of(plan, stages, folder / "bad.json"),
              HasSubstr(last + ".own.warm_up: stage " + std::to_string(stages["stages"].size()) +
                        " has a warm-up of 1048576 forward passes, not of 1 to "));
  // More first passes in the last stage than in the first, which hands over to it.
  const auto& sizes = stages["stages"].back();
  warm_up = 32 / (sizes["dp"].get<int>() * sizes["own"]["micro_batch"].get<int>());
  for (std::size_t s = 0; s + 1 < stages["stages"].size(); ++s) {
    stages["stages"][s]["own"]["warm_up"] = 1;
  }
  EXPECT_THAT(fault_of(plan, stages, folder / "bad.json"),
              HasSubstr("the plan fails the check 'schedule': stage 1 waits for ever before the "
                        "backward pass of micro-batch 0"));
}

TEST(GraphPipe, GreedyOrdersAreNeverSlowerAndListedWhereTheyAreTaken) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const auto time_s = [&] {
    const Ran ran = run_braid({"simulate", plan, "--json"});
    return nlohmann::json::parse(ran.out)["iteration_time_s"].get<double>();
  };
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "2"}));
  const double least_s = time_s();
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "2", "--schedule", "greedy"}));
  EXPECT_THAT(read_file(plan), HasSubstr("\"passes\": ["));
  EXPECT_LE(time_s(), least_s * (1 + 1e-9));
  const Ran verified = run_braid({"verify", plan});
  EXPECT_EQ(verified.status, 0) << verified.out;
  EXPECT_EQ(run_braid({"simulate", plan, "--html", folder / "page.html"}).status, 0);
  EXPECT_THAT(read_file(folder / "page.html"), HasSubstr("schedule own order"));
}

TEST(GraphPipe, RefusesOrdersOfPassesThatStagesCannotHave) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1"}));
  auto stages = nlohmann::json::parse(read_file(plan));
  const std::size_t count = stages["stages"].size();
  ASSERT_GT(count, 1U);
  const std::string last = "stages[" + std::to_string(count - 1) + "].own.passes";
  for (auto& stage : stages["stages"]) stage["own"].erase("warm_up");
  auto& own = stages["stages"].back()["own"];
  const int m = 32 / stages["stages"].back()["dp"].get<int>();
  ASSERT_GT(m, 1);
  const auto fault = [&](const std::vector<std::vector<int>>& passes) {
    own["passes"] = passes;
    return fault_of(plan, stages, folder / "bad.json");
  };
  EXPECT_THAT(fault({{1, 1, 0}}), HasSubstr(last + "[0][2]"));
  EXPECT_THAT(fault({{1, 1, m + 1}}),
              HasSubstr(last + ": stage " + std::to_string(count) + " runs more than"));
  EXPECT_THAT(fault({{1, 1, m - 1}}), HasSubstr(" forward and "));
  EXPECT_THAT(fault({{1, m, 1}, {m - 1, 1, 1}}),
              HasSubstr("runs the backward pass of micro-batch 1 before its forward pass"));
  own["passes"] = nlohmann::json::array({{m, m, 1}});
  stages["stages"].front()["own"]["passes"] = nlohmann::json::array({{1, 1, m}});
  EXPECT_THAT(fault_of(plan, stages, folder / "bad.json"),
              HasSubstr("the plan fails the check 'schedule': stage 1 waits for ever before the "
                        "backward pass of micro-batch 0"));
}

TEST(GraphPipe, InFlightCountsAreTheFewestThatLoseNoTimeOrTheTables) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1", "--inflight", "table"}));
  EXPECT_THAT(read_file(plan), Not(HasSubstr("warm_up")));
  const auto time_s = [&] {
    const Ran ran = run_braid({"simulate", plan, "--json"});
    return nlohmann::json::parse(ran.out)["iteration_time_s"].get<double>();
  };
  const double table_s = time_s();
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1"}));
  EXPECT_THAT(read_file(plan), HasSubstr("warm_up"));
  EXPECT_LE(time_s(), table_s);
}

TEST(GraphPipe, StagesRunInTheWaysAskedFor) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(
      plan_multi_modal(plan, {"--micro-batch", "2", "--tp", "2", "--recompute", "full"}));
  EXPECT_EQ(run_braid({"verify", plan}).status, 0);
  nlohmann::json written = nlohmann::json::parse(read_file(plan));
  for (const auto& stage : written["stages"]) {
    EXPECT_EQ(stage["tp"], 2);
  }
  ASSERT_NO_FATAL_FAILURE(
      plan_multi_modal(plan, {"--micro-batch", "1", "--stage-options", "data"}));
  written = nlohmann::json::parse(read_file(plan));
  for (const auto& stage : written["stages"]) {
    EXPECT_EQ(stage.value("tp", 1), 1);
  }
}

TEST(GraphPipe, RefusesPlansWithStagesOrLayersMissing) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_NO_FATAL_FAILURE(plan_multi_modal(plan, {"--micro-batch", "1"}));
  const auto good = nlohmann::json::parse(read_file(plan));
  auto missing = good;
  missing["stages"].erase(missing["stages"].size() - 1);
  EXPECT_THAT(fault_of(plan, missing, folder / "missing.json"), HasSubstr("there must be"));
  const std::size_t left = missing["stages"].size();
  missing["parallel"]["pp"] = left;
  EXPECT_THAT(fault_of(plan, missing, folder / "missing.json"), HasSubstr("is in no stage"));
  auto none = good;
  none["stages"] = nlohmann::json::array();
  EXPECT_THAT(fault_of(plan, none, folder / "none.json"), HasSubstr("stages"));
  auto twice = good;
  twice["stages"].push_back(good["stages"].back());
  twice["parallel"]["pp"] = left + 2;
  EXPECT_THAT(fault_of(plan, twice, folder / "twice.json"),
              HasSubstr("is placed twice, again in stage"));
}

TEST(GraphPipe, PlansMixedClustersEachStageOnOneKind) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  std::vector<std::string> words = job("plan", "candle-uno");
  words[3] = "p3.8xlarge:1nodes+g4dn.12xlarge:1nodes";
  words[7] = "256";
  words.insert(words.end(), {"--stage-options", "data", "--micro-batch", "64", "--planner",
                             "graphpipe", "--json", "-o", plan});
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto found = nlohmann::json::parse(read_file(plan));
  std::set<bool> groups;
  for (const auto& stage : found["stages"]) {
    std::set<bool> of_stage;
    for (const auto& range : stage["devices"]) {
      for (const auto& device : range) of_stage.insert(device >= 4);
    }
    EXPECT_EQ(of_stage.size(), 1U);
    groups.insert(of_stage.begin(), of_stage.end());
  }
  EXPECT_EQ(groups.size(), 2U);
  EXPECT_EQ(run_braid({"verify", plan}).status, 0);
  const Ran replayed = run_braid({"simulate", plan, "--json"});
  ASSERT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_EQ(nlohmann::json::parse(replayed.out)["iteration_time_s"],
            nlohmann::json::parse(ran.out)["iteration_time_s"]);
  EXPECT_EQ(run_braid({"report", plan, "-o", folder / "plan.html"}).status, 0);
  words[0] = "compare";
  words.resize(12);
  words.insert(words.end(), {"--planners", "graphpipe,piper"});
  const Ran compared = run_braid(words);
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("graphpipe  feasible"));
}

}  // namespace
}  // namespace braid
