#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"

namespace braid {
namespace {

using test::Ran;
using test::run_braid;

/// A table of GEMMs of which the times are those of a roof: 2 us, 600 TFLOP/s, 2.5 TB/s.
std::string roof_table() {
  std::string text = "system,backend,version,dtype,m,n,k,latency_us\n";
  for (const double m : {1, 64, 512, 4096}) {
    for (const double n : {1024, 4096, 8192}) {
      for (const double k : {1024, 4096, 8192}) {
        const double flops_us = 2 * m * n * k / 600e6;
        const double bytes_us = 2 * (m * n + m * k + n * k) / 2.5e6;
        text += "h100_sxm,trtllm,1,bf16," + std::to_string(static_cast<int>(m)) + "," +
                std::to_string(static_cast<int>(n)) + "," + std::to_string(static_cast<int>(k)) +
                "," + std::to_string(2 + flops_us + bytes_us) + "\n";
      }
    }
  }
  return text;
}

TEST(Kernels, AreFittedToTables) {
  const TemporaryFolder tables, figures;
  write_file(tables / "gemm.csv", roof_table());
  const Ran ran = run_braid({"calibrate", "--kernels", tables.path(), "--source", "made up",
                             "--out", figures.path(), "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Document printed = Document::parse(ran.out, Document::Syntax::json, "out");
  const Value group = printed.root()["groups"].elements()[0];
  EXPECT_EQ(group["chip"].as_string(), "h100-sxm");
  EXPECT_EQ(group["fitted"].as_int() + group["held_out"].as_int(), 36);
  EXPECT_LT(group["fitted_error"].as_double(), 0.1);
  const Ran held = run_braid({"validate", "--kernels", tables.path()});
  EXPECT_EQ(held.status, 0) << held.err;
  EXPECT_NE(held.out.find("h100-sxm"), std::string::npos) << held.out;
  EXPECT_EQ(run_braid({"validate"}).status, 2);
  const std::string text = read_file(figures / "h100-sxm.yaml");
  EXPECT_NE(text.find("source: \"made up\""), std::string::npos) << text;
}

TEST(Kernels, CalibratingNeedsOneInput) {
  const TemporaryFolder empty;
  EXPECT_EQ(run_braid({"calibrate"}).status, 2);
  EXPECT_EQ(run_braid({"calibrate", "--kernels", empty.path()}).status, 2);
  EXPECT_EQ(run_braid({"calibrate", "runs.csv", "--kernels", empty.path()}).status, 2);
  const Ran sourceless = run_braid({"calibrate", "--kernels", empty.path(), "--out", empty.path()});
  EXPECT_EQ(sourceless.status, 2);
  EXPECT_NE(sourceless.err.find("--source"), std::string::npos) << sourceless.err;
}

TEST(Kernels, AreShownForAllFormats) {
  const Ran chip = run_braid({"show", "h100-sxm"});
  EXPECT_NE(chip.out.find("Measured kernels"), std::string::npos);
  EXPECT_EQ(run_braid({"show", "v100-sxm-32gb"}).out.find("Measured kernels"), std::string::npos);
  const Ran ran = run_braid({"show", "h100-sxm", "--kernel", "gemm=4096,4096,4096", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Document times = Document::parse(ran.out, Document::Syntax::json, "out");
  for (const Value& row : times.root()["times"].elements()) {
    EXPECT_GT(row["time_s"].as_double(), 50e-6);
    EXPECT_LT(row["time_s"].as_double(), 300e-6);
  }
  for (const char* kernel :
       {"attention_prefill=32,8,128,1,4096", "attention_decode=32,8,128,64,4096,1024",
        "mla_prefill=16,1,4096", "mla_decode=16,64,4096", "experts=4096,4096,1536,8,128,1,8",
        "collectives=8,1e8", "experts"}) {
    EXPECT_EQ(run_braid({"show", "h100-sxm", "--kernel", kernel}).status, 0) << kernel;
  }
  for (const char* kernel : {"gemm=1,1", "gemm=1,1,1,1", "gemm=0,1,1", "gemm=a,b,c", "gem=1,1,1",
                             "attention_decode=8,32,128,1,1", "experts=1,1,1,9,8", "gemm="}) {
    const Ran refused = run_braid({"show", "h100-sxm", "--kernel", kernel});
    EXPECT_EQ(refused.status, 2) << kernel;
    EXPECT_NE(refused.err.find("--kernel: "), std::string::npos) << refused.err;
  }
  EXPECT_EQ(run_braid({"show", "v100-sxm-32gb", "--kernel", "gemm=1,1,1"}).status, 2);
}

}  // namespace
}  // namespace braid
