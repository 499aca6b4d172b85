#include "braid/trust/evidence.h"

#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/trust/confidence.h"

namespace braid {
namespace {

constexpr const char* kHead =
    "source,model,chip,trainer,format,experts,devices,parameters,tokens,micro_batch_tokens,tp,pp,"
    "dp,cp,ep,mfu,error,left_out,memory_error\n";
constexpr const char* kRow =
    "a,\"GPT, small\",h100-sxm,megatron,bf16,0,8,1e+09,8192,1024,2,1,4,1,1,0.4,0.05,-0.1,\n";

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(parse_evidence(text, "evidence.csv"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Evidence, OfTheProgramReadsBackAsItIs) {
  const Evidence& runs = evidence();
  ASSERT_GT(runs.size(), 1000U);
  EXPECT_EQ(parse_evidence(evidence_text(runs), "again"), runs);
  std::set<std::string> sources;
  for (const RunError& run : runs) sources.insert(run.source);
  EXPECT_GT(sources.size(), 10U);
}

TEST(Evidence, IsReadByColumn) {
  const Evidence runs = parse_evidence(std::string(kHead) + kRow, "evidence.csv");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].model, "GPT, small");
  EXPECT_EQ(runs[0].traits.devices, 8);
  EXPECT_EQ(runs[0].error, 0.05);
  EXPECT_EQ(runs[0].left_out, -0.1);
  EXPECT_FALSE(runs[0].memory);
}

TEST(Evidence, BadFilesAreNamedWithTheLine) {
  EXPECT_THAT(refusal_of("source,model\na,b\n"), testing::HasSubstr("no such column"));
  std::string row = kRow;
  row.replace(row.find("0.4,"), 3, "big");
  EXPECT_THAT(refusal_of(kHead + row), testing::HasSubstr("evidence.csv:2: mfu"));
  row = kRow;
  row.replace(row.find(",8,"), 3, ",0,");
  EXPECT_THAT(refusal_of(kHead + row), testing::HasSubstr("above 0"));
}

TEST(Confidence, SaysWhatIsBeyondTheEvidence) {
  const Evidence runs = parse_evidence(std::string(kHead) + kRow, "evidence.csv");
  JobTraits job = runs[0].traits;
  EXPECT_THAT(confidence_of(job, runs).beyond, testing::IsEmpty());
  job.devices = 512;
  job.trainer = "torchtitan";
  job.experts = true;
  job.format = "fp8";
  job.cp = 4;
  EXPECT_THAT(confidence_of(job, runs).beyond,
              testing::ElementsAre("no measured run by torchtitan on h100-sxm",
                                   "no measured run of experts on h100-sxm",
                                   "no measured run in fp8 on h100-sxm",
                                   "no measured run on more than 8 h100-sxm",
                                   "no measured run with cp above 1 on h100-sxm"));
  job.chip = "tpu-v9";
  EXPECT_THAT(confidence_of(job, runs).beyond, testing::ElementsAre("no measured run on tpu-v9"));
  EXPECT_EQ(confidence_of(job, runs).nearest.size(), 1U);
}

TEST(Confidence, NamesTheNearestOfDifferentRuns) {
  Evidence runs = parse_evidence(std::string(kHead) + kRow + kRow, "evidence.csv");
  RunError other = runs[0];
  other.model = "Llama";
  other.traits.devices = 64;
  runs.push_back(other);
  const Confidence confidence = confidence_of(other.traits, runs);
  ASSERT_EQ(confidence.nearest.size(), 2U);
  EXPECT_EQ(confidence.nearest[0].model, "Llama");
  EXPECT_EQ(confidence.nearest[1].model, "GPT, small");
}

}  // namespace
}  // namespace braid
