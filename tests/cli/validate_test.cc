#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/file.h"

#include "base/temporary_folder.h"
#include "cli/program.h"

namespace braid {
namespace {

using testing::Ran;
using testing::run_braid;

// Korthikanti et al. 2022, table 5: 22 billion parameters, full recomputation and without.
constexpr const char* kRuns =
    "dataset,framework,hardware,n_accel,layers,hidden,heads,vocab,seq_len,gbs_seqs,mbs,tp,"
    "recompute,"
    "precision,iter_time_s\n"
    "k,Megatron-LM,A100,8,48,6144,64,51200,2048,4,4,8,full,fp16,1.42\n"
    "k,Megatron-LM,A100,8,48,6144,64,51200,2048,4,4,8,selective + sequence parallel,fp16,1.10\n"
    "k,Megatron-LM,abacus,8,48,6144,64,51200,2048,4,4,8,full,fp16,1.42\n";

TEST(Validate, HoldsPredictionsAgainstMeasuredRuns) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.csv";
  write_file(file, kRuns);
  const Ran ran = run_braid({"validate", file, "--by", "dataset,recompute", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Document document = Document::parse(ran.out, Document::Syntax::json, "out");
  const std::vector<Value> groups = document.root()["groups"].elements();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0]["by"]["recompute"].as_string(), "full");
  EXPECT_EQ(groups[0]["rows"].as_int(), 2);
  EXPECT_EQ(groups[0]["predicted"].as_int(), 1);
  EXPECT_LT(groups[0]["mape"].as_double(), 0.25);
  const std::vector<Value> unpredicted = document.root()["unpredicted"].elements();
  ASSERT_EQ(unpredicted.size(), 1U);
  EXPECT_EQ(unpredicted[0]["row"].as_int(), 4);
  EXPECT_EQ(document.root()["runs"].size(), 2U);

  const std::string page = folder / "out.html";
  const Ran table = run_braid({"validate", file, "--html", page});
  EXPECT_EQ(table.status, 0);
  EXPECT_NE(table.out.find("hardware 'abacus' is not in the catalogue (line 4)"),
            std::string::npos);
  EXPECT_NE(read_file(page).find("<circle"), std::string::npos);
  EXPECT_EQ(run_braid({"validate", file, "--html", folder / "no/such/folder.html"}).status, 2);
}

TEST(Validate, ComparesWithARecord) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.csv";
  const std::string record = folder / "record.csv";
  write_file(file, kRuns);
  ASSERT_EQ(run_braid({"validate", file, "--record", record}).status, 0);
  const Ran same = run_braid({"validate", file, "--against", record});
  EXPECT_EQ(same.status, 0) << same.out;
  write_file(record, "dataset,runs,mean_error,memory_error,not_predicted\nk,3,0.001,,\n");
  const Ran worse = run_braid({"validate", file, "--against", record});
  EXPECT_EQ(worse.status, 1);
  EXPECT_NE(worse.out.find("line 4 is no longer predicted"), std::string::npos) << worse.out;
  EXPECT_NE(worse.out.find("the mean error is"), std::string::npos) << worse.out;
}

TEST(Calibrate, WritesAFileThatOtherVerbsUse) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.csv";
  const std::string figures = folder / "ours.yaml";
  write_file(file, kRuns);
  const Ran fitted = run_braid({"calibrate", file, "--out", figures});
  ASSERT_EQ(fitted.status, 0) << fitted.err;
  EXPECT_NE(read_file(figures).find("chip: a100-sxm-80gb"), std::string::npos);
  const auto mean_error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json"});
    const Ran ran = run_braid(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const Document document = Document::parse(ran.out, Document::Syntax::json, "out");
    return document.root()["groups"].elements()[0]["mape"].as_double();
  };
  EXPECT_LE(mean_error({"validate", file, "--calibration", figures}),
            mean_error({"validate", file}));
  const std::vector<std::string> plan = {
      "plan", "gpt2", "--cluster", "dgx-a100:8", "--global-batch", "8",    "--tp", "1",
      "--pp", "1",    "--seq-len", "256",        "--calibration",  figures};
  const Ran planned = run_braid(plan);
  EXPECT_EQ(planned.status, 0) << planned.err;
  std::vector<std::string> other = plan;
  other[3] = "dgx-h100:8";
  const Ran refused = run_braid(other);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("is calibrated"), std::string::npos) << refused.err;
}

TEST(Calibrate, CrossValidates) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.csv";
  write_file(file, kRuns);
  const Ran ran = run_braid({"calibrate", file, "--cross-validate"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("left out"), std::string::npos);
}

TEST(Validate, RefusesBadFilesAndColumns) {
  const TemporaryFolder folder;
  const std::string file = folder / "runs.csv";
  write_file(file, "hardware,tp,iter_time_s\nA100,x,1\n");
  const Ran bad = run_braid({"validate", file});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("runs.csv:2: tp: 'x' is not a number"), std::string::npos) << bad.err;
  write_file(file, "hardware,tp,iter_time_s\n");
  EXPECT_EQ(run_braid({"validate", file}).status, 2);
  EXPECT_EQ(run_braid({"validate", folder / "none.csv"}).status, 2);
  write_file(file, kRuns);
  EXPECT_EQ(run_braid({"validate", file, "--by", "colour"}).status, 2);
}

}  // namespace
}  // namespace braid
