#include "braid/serve/decode_comparison.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;

DecodeJob job_of(const ServingFixture& with, double prefix, double spread, std::int64_t batch) {
  DecodeJob job;
  job.model = &with.model;
  job.engine = &with.engine;
  job.system = &with.system;
  job.kernels = &with.kernels;
  job.format = serving_format(with.model, "bf16");
  job.lengths = spread_lengths(prefix, spread, batch);
  job.host_bytes_per_s = 32e9;
  return job;
}

const DecodeEstimate& of(const std::vector<DecodeEstimate>& estimates, DecodeScheme scheme) {
  return estimates[static_cast<std::size_t>(scheme)];
}

/// One layer, as the thesis measures it, so that caches fit.
ServingFixture& one_layer() {
  static ServingFixture with("llama-2-7b", "dgx-a100:4", "vllm");
  with.model.layers.front().count = 1;
  with.engine.figures = EngineFigures();  // No time of its own.
  return with;
}

TEST(DecodeComparison, AllDoTheSameWork) {
  const auto found = compare_decoding(job_of(one_layer(), 20000, 0, 64));
  ASSERT_EQ(found.size(), 5U);
  for (const DecodeEstimate& each : found) {
    EXPECT_EQ(each.imbalance, 1);
    EXPECT_EQ(each.waiting, 0);
    EXPECT_NEAR(each.tokens_per_s * each.step_s(), 64, 1e-9);
    EXPECT_GT(each.compute_s, 0);
  }
  EXPECT_EQ(of(found, DecodeScheme::data).exchange_s, 0);
  EXPECT_EQ(of(found, DecodeScheme::data).layer.total(), 0);
  // What is sent less takes less time.
  EXPECT_LT(of(found, DecodeScheme::cache_newest).exchange_s,
            of(found, DecodeScheme::cache_queries).exchange_s);
  EXPECT_LT(of(found, DecodeScheme::cache_newest).exchange_s,
            of(found, DecodeScheme::cache).exchange_s);
  // Block tables are as long as the sequences that a device has, whole or by parts.
  EXPECT_NEAR(of(found, DecodeScheme::tensor).host_s, 4 * of(found, DecodeScheme::data).host_s,
              1e-12);
  EXPECT_NEAR(of(found, DecodeScheme::cache).host_s, of(found, DecodeScheme::data).host_s, 1e-12);
}

TEST(DecodeComparison, LengthsThatDifferSlowDataParallelismAlone) {
  const auto even = compare_decoding(job_of(one_layer(), 20000, 0, 16));
  DecodeJob job = job_of(one_layer(), 20000, 0, 16);
  // The first device has all long ones: the same tokens in all.
  for (std::size_t i = 0; i < job.lengths.size(); ++i) {
    job.lengths[i] = i % 4 == 0 ? 50000 : 10000;
  }
  const auto uneven = compare_decoding(job);
  EXPECT_DOUBLE_EQ(of(uneven, DecodeScheme::data).imbalance, 2.5);
  EXPECT_LT(of(uneven, DecodeScheme::data).tokens_per_s, of(even, DecodeScheme::data).tokens_per_s);
  for (const DecodeScheme scheme : {DecodeScheme::tensor, DecodeScheme::cache_queries}) {
    EXPECT_DOUBLE_EQ(of(uneven, scheme).tokens_per_s, of(even, scheme).tokens_per_s);
  }
}

TEST(DecodeComparison, CachesThatDoNotFitWait) {
  const ServingFixture with("llama-2-7b", "dgx-a100:4", "vllm");
  const auto found = compare_decoding(job_of(with, 20000, 0, 64));
  // Every device holds all weights, but for tensor parallelism.
  EXPECT_GT(of(found, DecodeScheme::data).waiting, of(found, DecodeScheme::tensor).waiting);
  EXPECT_NEAR(of(found, DecodeScheme::data).waiting, of(found, DecodeScheme::cache).waiting, 1e-9);
  EXPECT_GT(of(found, DecodeScheme::tensor).waiting, 0);
  EXPECT_LT(of(found, DecodeScheme::data).waiting, 64);
}

TEST(DecodeComparison, LongPrefixesAreForShardedCachesShortOnesAreNot) {
  // A few sequences of which one is long: only sharded caches share its work.
  DecodeJob job = job_of(one_layer(), 1000, 0, 4);
  job.lengths.front() = 500000;
  const auto found = compare_decoding(job);
  EXPECT_GT(of(found, DecodeScheme::cache_queries).tokens_per_s,
            of(found, DecodeScheme::data).tokens_per_s);
  const auto all_short = compare_decoding(job_of(one_layer(), 100, 0, 4));
  EXPECT_LT(of(all_short, DecodeScheme::cache_queries).tokens_per_s,
            of(all_short, DecodeScheme::data).tokens_per_s);
}

TEST(DecodeComparison, RefusesWhatItDoesNotModel) {
  const ServingFixture windows("gemma-3-1b", "dgx-a100:4", "vllm");
  EXPECT_THROW(compare_decoding(job_of(windows, 1000, 0, 4)), Error);
  const ServingFixture single("llama-2-7b", "dgx-a100:1", "vllm");
  EXPECT_THROW(compare_decoding(job_of(single, 1000, 0, 4)), Error);
}

TEST(DecodeComparison, SpreadIsEvenAndTheSameEveryTime) {
  const std::vector<double> lengths = spread_lengths(1000, 0.5, 4000);
  double sum = 0;
  for (const double length : lengths) {
    EXPECT_GE(length, 500);
    EXPECT_LE(length, 1500);
    sum += length;
  }
  EXPECT_NEAR(sum / 4000, 1000, 20);
  EXPECT_EQ(lengths, spread_lengths(1000, 0.5, 4000));
}

}  // namespace
}  // namespace braid
