#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;

// Korthikanti et al. 2022, table 5: 22 billion parameters, full recomputation and without.
constexpr const char* kRuns =
    "dataset,framework,hardware,n_accel,layers,hidden,heads,vocab,seq_len,gbs_seqs,mbs,tp,"
    "recompute,"
    "precision,iter_time_s\n"
    "k,Megatron-LM,A100,8,48,6144,64,51200,2048,4,4,8,full,fp16,1.42\n"
    "k,Megatron-LM,A100,8,48,6144,64,51200,2048,4,4,8,selective + sequence parallel,fp16,1.10\n"
    "k,Megatron-LM,abacus,8,48,6144,64,51200,2048,4,4,8,full,fp16,1.42\n";

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

}  // namespace
}  // namespace braid
