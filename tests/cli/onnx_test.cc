#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "frontend/onnx_model_builder.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;

const std::string kData = "/usr/share/libonnx-testdata/data/";

TEST(Onnx, PlansVerifyAndExport) {
  const std::string model = kData + "pytorch-converted/test_Conv2d_groups/model.onnx";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Ran ran = run_braid(
      {"plan", model, "--cluster", "dgx-h100:8", "--global-batch", "64", "--json", "-o", plan});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const nlohmann::json out = nlohmann::json::parse(ran.out, nullptr, false);
  EXPECT_GT(out.value("iteration_time_s", 0.0), 0);
  EXPECT_EQ(run_braid({"verify", plan}).status, 0);
  EXPECT_EQ(run_braid({"simulate", plan}).status, 0);
}

// Three towers of four products each that one more joins.
TEST(Onnx, BranchesBecomeStagesSideBySide) {
  OnnxModelBuilder builder;
  std::vector<std::string> ends;
  for (const std::string tower : {"a", "b", "c"}) {
    std::string last = "in_" + tower;
    builder.input(last, {1, 4096});
    for (int i = 0; i < 4; ++i) {
      const std::string name = tower + std::to_string(i);
      builder.weight("weight_" + name, {4096, 4096});
      builder.node("MatMul", {last, "weight_" + name}, {"product_" + name});
      builder.node("Relu", {"product_" + name}, {"out_" + name});
      last = "out_" + name;
    }
    ends.push_back(last);
  }
  builder.node("Concat", ends, {"joined"}, {{"axis", 1}});
  builder.weight("weight_end", {3 * 4096, 16});
  builder.node("MatMul", {"joined", "weight_end"}, {"answer"});
  builder.output("answer");
  const TemporaryFolder folder;
  const std::string model = folder / "towers.onnx";
  const std::string plan = folder / "plan.json";
  write_file(model, builder.bytes());
  std::vector<std::string> job = {"plan",        model,  "--cluster",      "p3.8xlarge:2nodes",
                                  "--precision", "fp32", "--global-batch", "1024"};
  std::vector<std::string> words = job;
  words.insert(words.end(), {"--planner", "graphpipe", "-o", plan});
  const Ran ran = run_braid(words);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(run_braid({"verify", plan}).status, 0);
  // Several stages begin with inputs of their own.
  const auto found = nlohmann::json::parse(read_file(plan));
  std::map<std::size_t, std::size_t> stage_of;
  for (std::size_t s = 0; s < found["stages"].size(); ++s) {
    for (const auto& range : found["stages"][s]["chunks"][0]["layers"]) {
      const std::size_t first = range[0], last = range[1];
      for (std::size_t layer = first; layer <= last; ++layer) stage_of[layer] = s;
    }
  }
  std::set<std::size_t> fed;
  for (const auto& edge : found["profile"]["edges"]) {
    const std::size_t source = stage_of.at(edge[0]), target = stage_of.at(edge[1]);
    if (source != target) fed.insert(target);
  }
  EXPECT_GT(found["stages"].size(), fed.size() + 1);
  job[0] = "compare";
  job.insert(job.end(), {"--planners", "graphpipe,pipedream,piper"});
  const Ran compared = run_braid(job);
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("graphpipe  feasible"));
}

TEST(Onnx, SymbolicDimensionsAreGivenByDim) {
  const std::string model = kData + "node/test_expand_dim_unchanged/model.onnx";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "libonnx-testdata is not installed";
  for (const char* verb : {"plan", "profile"}) {
    const Ran ran = run_braid({verb, model, "--cluster", "dgx-h100:8", "--dim", "batch=8"});
    EXPECT_EQ(ran.status, 2) << verb;
    EXPECT_THAT(ran.err, HasSubstr("no symbolic dimension 'batch'"));
  }
  // A size for one dimension does not swallow the model behind it.
  const Ran shown = run_braid({"show", "--dim", "batch=8", model});
  EXPECT_EQ(shown.status, 2);
  EXPECT_THAT(shown.err, HasSubstr("no symbolic dimension 'batch'"));
}

}  // namespace
}  // namespace braid
