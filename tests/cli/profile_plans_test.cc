#include <string>
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
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// One layer of a profile in Piper's format.
std::string piper_layer(int id, const std::string& name, double time, bool last) {
  const std::string before = id > 0 ? "{\"" + std::to_string(id - 1) + "\": 0}" : "{}";
  const std::string after = last ? "{}" : "{\"" + std::to_string(id + 1) + "\": 0}";
  const auto option = [&](const char* kind, double takes, int stash) {
    return "{\"id\": \"" + std::string(kind) + "\", \"timePerSample\": " + std::to_string(takes) +
           ", \"parameterSize\": 8, \"memoryUsageA\": " + std::to_string(stash) +
           ", \"memoryUsageB\": 30, \"syncTimeFw\": " + before + ", \"syncTimeBw\": " + after + "}";
  };
  const auto degree = [&](const char* tp, double share) {
    return "\"" + std::string(tp) + "\": [" + option("vanilla", share * time, 9) + "," +
           option("activation recomp", share * time * 4 / 3, 2) + "]";
  };
  return "{\"id\": " + std::to_string(id) + ", \"name\": \"" + name + "\", \"TMPCs\": {" +
         degree("1", 1) + "," + degree("2", 0.6) + "}}";
}

/// A chain of layers, for 4 devices and 8 micro-batches.
std::string piper_chain() {
  std::string nodes, edges;
  const std::vector<double> times = {2, 6, 6, 6, 3};
  for (std::size_t l = 0; l < times.size(); ++l) {
    const int id = static_cast<int>(l);
    nodes += (l > 0 ? "," : "") + piper_layer(id, "part", times[l], l + 1 == times.size());
    if (l == 0) continue;
    edges += std::string(l > 1 ? "," : "") + "{\"sourceId\": " + std::to_string(id - 1) +
             ", \"destId\": " + std::to_string(id) + ", \"communicationCost\": 4}";
  }
  return "{\"maxMemoryPerDevice\": 400, \"maxDevices\": 4, \"bandwidth\": 8, \"mbsInBatch\": 8, "
         "\"nodes\": [" +
         nodes + "], \"edges\": [" + edges + "]}";
}

/// All that `braid list planners` has.
std::vector<std::string> planners() {
  std::vector<std::string> names;
  const auto listed = nlohmann::json::parse(run_braid({"list", "planners", "--json"}).out);
  for (const auto& entry : listed.is_object() ? listed["planners"] : listed) {
    names.push_back(entry.is_object() ? entry["name"] : entry);
  }
  EXPECT_GT(names.size(), 10U);
  return names;
}

class ProfilePlans : public ::testing::Test {
 protected:
  /// Plans with -o and returns what --json says.
  nlohmann::json plan(Words words) {
    words.insert(words.begin(), "plan");
    for (const char* word : {"-o", plan_.c_str(), "--json"}) words.emplace_back(word);
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 0) << ::testing::PrintToString(words) << ran.err;
    return ran.status == 0 ? nlohmann::json::parse(ran.out) : nlohmann::json();
  }

  /// Whether the plan that was written holds, and what simulating it says is what was said.
  void expect_plan_of(const nlohmann::json& said) {
    const Ran verified = run_braid({"verify", plan_});
    EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
    const Ran simulated = run_braid({"simulate", plan_, "--json", "--trace", folder_ / "t.json"});
    ASSERT_EQ(simulated.status, 0) << simulated.err;
    const auto times = nlohmann::json::parse(simulated.out);
    EXPECT_EQ(times["iteration_time_s"], said["iteration_time_s"]);
    EXPECT_EQ(times["peak_memory_bytes"], said["peak_memory_bytes"]);
    EXPECT_GE(said["iteration_time_s"], said["lower_bound_s"]);
    EXPECT_EQ(run_braid({"report", plan_, "-o", folder_ / "r.html"}).status, 0);
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "chain.json";
  std::string plan_ = folder_ / "plan.json";
};

// Nothing is recomputed where it need not be, so that time stands for both passes of all layers:
// no plan on four devices is faster than their even share.
TEST_F(ProfilePlans, EveryPlannersAnswerIsAPlan) {
  write_file(file_, piper_chain());
  for (const std::string& planner : planners()) {
    const auto said = plan({"--profile", file_, "--planner", planner});
    if (said.is_null()) continue;
    EXPECT_GE(said["iteration_time_s"], 23.0 * 8 / 4 * (1 - 1e-9)) << planner;
    expect_plan_of(said);
  }
}

TEST_F(ProfilePlans, PlannersOfOneSpaceAgree) {
  write_file(file_, piper_chain());
  const auto braid = plan({"--profile", file_, "--planner", "braid"});
  const auto all = plan({"--profile", file_, "--planner", "exhaustive", "--all-devices"});
  EXPECT_EQ(braid["status"], "optimal");
  EXPECT_LE(braid["iteration_time_s"], all["iteration_time_s"]);
  for (const std::string& planner : planners()) {
    const auto other = plan({"--profile", file_, "--planner", planner});
    if (other.contains("uniform") && !other["uniform"]) continue;
    if (other.contains("plan") && !other["plan"]["uniform"]) continue;
    EXPECT_LE(braid["iteration_time_s"], double{other["iteration_time_s"]} * (1 + 1e-12))
        << planner;
  }
}

TEST_F(ProfilePlans, OfAModelsOwnProfileAreThoseOfTheModel) {
  struct Case {
    const char* model;
    Words job, degrees;
  };
  const Words no_offload = {"--no-offload", "--cp", "1"};
  const std::vector<Case> cases = {
      {"gpt2",
       {"--cluster", "dgx-h100:8", "--micro-batch", "2", "--global-batch", "32"},
       {"--tp", "1,2,3,4,6"}},
      {"gpt2",
       {"--cluster", "p3.8xlarge:2nodes", "--micro-batch", "1", "--global-batch", "16"},
       {"--tp", "1,2,4"}},
      {"resnet-50", {"--cluster", "dgx-a100:8", "--micro-batch", "4", "--global-batch", "64"}, {}},
  };
  for (const Case& each : cases) {
    Words profile = {"profile",   each.model,  each.job[0], each.job[1],
                     each.job[2], each.job[3], "--for",     "ideal"};
    profile.insert(profile.end(), each.degrees.begin(), each.degrees.end());
    for (const char* word : {"-o", file_.c_str()}) profile.emplace_back(word);
    const Ran written = run_braid(profile);
    ASSERT_EQ(written.status, 0) << written.err;
    for (const char* planner :
         {"braid", "megatron", "amp", "phaze", "piper", "equi", "graphpipe"}) {
      Words job = each.job;
      job.insert(job.end(), {"--planner", planner, "--for", "ideal"});
      if (std::string(planner) == "braid") {
        job.insert(job.end(), no_offload.begin(), no_offload.end());
        if (!each.degrees.empty() && each.job[1] != "dgx-h100:8") {
          job.insert(job.end(), {"--tp", "2"});
        }
      }
      if (std::string(planner) == "megatron" && each.job[1] == "dgx-h100:8") continue;
      Words of_model = job, of_profile = job;
      of_model.insert(of_model.begin(), each.model);
      of_profile.insert(of_profile.begin(), {"--profile", file_});
      const auto expected = plan(of_model);
      const auto said = plan(of_profile);
      EXPECT_EQ(said["iteration_time_s"], expected["iteration_time_s"]) << each.model << planner;
      EXPECT_EQ(said["peak_memory_bytes"], expected["peak_memory_bytes"]) << each.model << planner;
      EXPECT_EQ(said["objective"]["value"], expected["objective"]["value"])
          << each.model << planner;
      EXPECT_EQ(said["parallel"], expected["parallel"]) << each.model << planner;
    }
  }
}

TEST_F(ProfilePlans, AreCompared) {
  write_file(file_, piper_chain());
  const Words words = {"compare", "--profile", file_, "--planners", "piper,phaze,braid,graphpipe"};
  Words as_json = words;
  as_json.emplace_back("--json");
  const auto rows = nlohmann::json::parse(run_braid(as_json).out)["rows"];
  ASSERT_EQ(rows.size(), 4U);
  for (const auto& row : rows) {
    EXPECT_EQ(row["verified"], true) << row;
    EXPECT_GT(row["iteration_time_s"], 0);
    EXPECT_EQ(row["devices_used"], 4);
  }
  EXPECT_EQ(rows[0]["objective"]["name"], "time per sample (Piper, s)");
  EXPECT_EQ(rows[0]["objective"]["value"],
            plan({"--profile", file_, "--planner", "piper"})["objective"]["value"]);
  EXPECT_EQ(rows[1]["objective"]["name"], "time per batch (Phaze, s)");
  const Ran text = run_braid(words);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("chain on 4 devices"));
}

// Three replicas share eight micro-batches as if these could be cut.
TEST_F(ProfilePlans, SayWhyThereIsNone) {
  std::string text = piper_chain();
  const std::string devices = "\"maxDevices\": 4";
  text.replace(text.find(devices), devices.size(), "\"maxDevices\": 3");
  write_file(file_, text);
  const Words words = {"plan", "--profile", file_, "--rules", "paper", "--planner", "dp-only"};
  Words as_json = words;
  as_json.emplace_back("--json");
  const Ran ran = run_braid(as_json);
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto said = nlohmann::json::parse(ran.out);
  EXPECT_EQ(said["stages"][0]["dp"], 3);
  EXPECT_TRUE(said["plan"].is_null());
  EXPECT_THAT(said["no_plan"], HasSubstr("3, do not divide the 8 micro-batches"));
  Words written = words;
  for (const char* word : {"-o", plan_.c_str()}) written.emplace_back(word);
  const Ran refused = run_braid(written);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("there is no plan to write: the replicas of stage 1"));
}

TEST_F(ProfilePlans, OfPipersProfilesAreExportedAsFarAsTheySay) {
  write_file(file_, piper_chain());
  plan({"--profile", file_, "--planner", "braid"});
  const Ran megatron = run_braid({"export", plan_, "--to", "megatron"});
  EXPECT_EQ(megatron.status, 2);
  EXPECT_THAT(megatron.err, HasSubstr("Megatron-LM has no script for chain"));
  const Ran deepspeed = run_braid({"export", plan_, "--to", "deepspeed"});
  EXPECT_EQ(deepspeed.status, 0) << deepspeed.err;
  EXPECT_THAT(deepspeed.out, HasSubstr("gradient_accumulation_steps"));
}

}  // namespace
}  // namespace braid
