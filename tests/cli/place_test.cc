#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"

namespace braid {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;
using ::testing::Not;

/// A decoder of two blocks, small enough for the reference kernels.
constexpr const char* tiny_config = R"({
  "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": false})";

class Place : public ::testing::Test {
 protected:
  Place() {
    write_file(model_, tiny_config);
    // LeakSanitizer's own thread crashes on those of OpenBLAS, which is loaded where it is there.
    ::setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  }

  Ran placed(std::vector<std::string> more) const {
    std::vector<std::string> words = {"place",   model_, "--seq-len", "8",
                                      "--store", store_, "--samples", "3"};
    words.insert(words.end(), more.begin(), more.end());
    return run_braid(words);
  }

  TemporaryFolder folder_;
  std::string model_ = folder_ / "config.json", store_ = folder_ / "times.sqlite";
  std::string placement_ = folder_ / "placement.json";
};

TEST_F(Place, CoversEveryOperatorOnceAndMeasuresOnce) {
  const Ran ran = placed({"--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json first = json::parse(ran.out);
  std::size_t operators = 0;
  double sum_s = 0;
  for (const json& group : first["groups"]) {
    operators += group["operators"].size();
    sum_s += group["cost_s"].get<double>();
  }
  EXPECT_EQ(operators, first["operators"]);
  EXPECT_EQ(first["known"], 0);
  const json& ways = first["ways"];
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0]["name"], "mix");
  double least_s = 1e9;
  for (const json& way : ways) {
    // By their parts no backend alone is faster than the mix; what is chosen is fastest as a whole.
    EXPECT_TRUE(way["kind"] != "backend" || way["predicted_s"] >= ways[0]["predicted_s"]);
    if (way["name"] == first["chosen"]) {
      EXPECT_NEAR(sum_s, way["predicted_s"].get<double>(), 1e-12);
    }
    if (!way["measured"].is_null()) {
      least_s = std::min(least_s, way["measured"]["median_s"].get<double>());
    }
  }
  for (const json& way : ways) {
    const bool is_chosen = way["name"] == first["chosen"];
    EXPECT_TRUE(!is_chosen || way["measured"]["median_s"] == least_s);
  }
  const json again = json::parse(placed({"--json"}).out);
  EXPECT_EQ(again["measured"], 0);
  EXPECT_EQ(again["known"], first["measured"]);
}

TEST_F(Place, RunsWhatItHasWritten) {
  const std::string page = folder_ / "page.html", picture = folder_ / "picture.svg";
  const Ran ran = placed({"-o", placement_, "--picture", page});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part :
       {"75 operators", "mix", "Its parts add up to", "Weights are random", "braid place --run"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
  EXPECT_THAT(read_file(page), HasSubstr("block1.attention.core"));
  EXPECT_EQ(placed({"--picture", picture}).status, 0);
  EXPECT_THAT(read_file(picture), HasSubstr("<svg"));
  std::filesystem::create_directory(folder_ / "out");
  const Ran run =
      run_braid({"place", "--run", placement_, "--samples", "3", "--outputs", folder_ / "out"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("The answer is that of the reference kernels."));
  EXPECT_GT(std::filesystem::file_size(folder_ / "out/output_0.pb"), 8 * 50 * sizeof(float));
  // What was written is read again as what is fed.
  std::filesystem::create_directory(folder_ / "in");
  std::filesystem::copy(folder_ / "out/output_0.pb", folder_ / "in/input_0.pb");
  const Ran fed = run_braid({"place", "--run", placement_, "--inputs", folder_ / "in"});
  EXPECT_EQ(fed.status, 2);
  EXPECT_THAT(fed.err, HasSubstr("input"));
}

TEST_F(Place, ChangedModelsAreNotRun) {
  ASSERT_EQ(placed({"-o", placement_}).status, 0);
  json changed = json::parse(read_file(placement_));
  changed["groups"][0]["operators"][0] = "another";
  write_file(placement_, changed.dump());
  Ran run = run_braid({"place", "--run", placement_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("groups[0]: another is not operator"));
  changed["groups"].erase(0);
  write_file(placement_, changed.dump());
  run = run_braid({"place", "--run", placement_});
  EXPECT_THAT(run.err, HasSubstr("is in 0 groups"));
  changed["backends"]["onednn"] = "0.1";
  changed["groups"] = json::array();
  write_file(placement_, changed.dump());
  EXPECT_EQ(run_braid({"place", "--run", placement_}).status, 2);
}

TEST_F(Place, BadInput) {
  const auto refused = [](const std::vector<std::string>& words) {
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 2) << ran.out;
    EXPECT_THAT(ran.err, Not(HasSubstr("internal")));
    return ran.err;
  };
  EXPECT_THAT(refused({"place"}), HasSubstr("give a model"));
  EXPECT_THAT(refused({"place", model_, "--run", "x"}), HasSubstr("names its model"));
  EXPECT_THAT(refused({"place", model_, "--backends", "onedn"}),
              HasSubstr("did you mean 'onednn'"));
  EXPECT_THAT(refused({"place", model_, "--outputs", "x"}), HasSubstr("only --run"));
  EXPECT_THAT(refused({"place", "gnmt"}), HasSubstr("encoder.layer0.forward"));
  EXPECT_THAT(refused({"place", "mixtral-8x7b", "--layers", "1", "--seq-len", "8"}),
              HasSubstr("router"));
  EXPECT_THAT(refused({"place", "gpt3-1t", "--seq-len", "8"}), HasSubstr("--layers"));
  EXPECT_THAT(refused({"place", "--run", model_}), HasSubstr("is no placement"));
  write_file(store_, "no database");
  EXPECT_THAT(refused({"place", model_, "--seq-len", "8", "--store", store_}),
              HasSubstr("database"));
}

}  // namespace
}  // namespace braid
