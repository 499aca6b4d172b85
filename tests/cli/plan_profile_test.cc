#include <algorithm>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "support/source_path.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class PlanProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(file_, read_file(test::source_path("tests/cases/files/piper_chain.json")));
  }

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

TEST_F(PlanProfile, ComesFromStandardInputToo) {
  const auto of_file = plan({});
  const Ran ran = test::run_program(
      {"/bin/sh", "-c", "'" BRAID_PROGRAM "' plan --profile - --json < '" + file_ + "'"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto printed = nlohmann::json::parse(ran.out);
  EXPECT_EQ(printed["objective"], of_file["objective"]);
  EXPECT_EQ(printed["iteration_time_s"], of_file["iteration_time_s"]);
  EXPECT_EQ(printed["stages"], of_file["stages"]);
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

// Nobody has written how to divide convolutions.
TEST(PlanProfileOfModel, PlansWithAutoShardings) {
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
  profile("manual");
  const double roomy_s = time_on("16GB", "piper", 0);
  time_on("100MB", "tp-only", 1);
  profile("auto");
  EXPECT_LE(time_on("16GB", "piper", 0), roomy_s);
  EXPECT_GT(time_on("100MB", "tp-only", 0), 0);
  EXPECT_GT(time_on("16GB", "phaze", 0), 0);
}

}  // namespace
}  // namespace braid
