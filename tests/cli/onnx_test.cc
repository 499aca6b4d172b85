#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "cli/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::run_braid;

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
