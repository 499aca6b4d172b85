// DFModel's serving runs on 16 SN40L (section VIII) from its own equations.
#include <gtest/gtest.h>

#include "braid/dataflow/dataflow_job.h"
#include "braid/serve/speculation.h"

#include "serve/published_speculation.h"

namespace braid {
namespace {

/// A decoder as its serving runs have it: a key and value for each head, two matrices of the
/// feed-forward network, 4,096 cached tokens.
struct PublishedDecoder {
  double layers = 0, hidden = 0, inner = 0;
  double weights() const { return 4 * hidden * hidden + 2 * hidden * inner; }
};
constexpr PublishedDecoder kLlama68m{2, 768, 3072}, kLlama8b{32, 4096, 14336},
    kLlama70b{80, 8192, 28672}, kLlama405b{126, 16384, 53248};

constexpr double kTokens = 4096, kBytes = 2;
constexpr double kFlopsPerS = 0.9 * 1040 * 32 * 6 * 2 * 1.6e9, kBytesPerS = 1638.4e9;

/// Both all-reduces of a layer's activations, `tokens` of them, over a ring of `chips`.
double reduced_s(const PublishedDecoder& of, std::int64_t chips, double tokens) {
  Fabric fabric;
  fabric.dimensions = {{FabricShape::ring, chips, 50e9, FabricRole::tensor}};
  fabric.latency_s = 150e-9;
  return 2 * all_reduce_s(tokens * of.hidden * kBytes, FabricRole::tensor, fabric, {2, true});
}

/// One token through all layers. Compute, memory and network add up; parameters are read.
double decode_s(const PublishedDecoder& of, std::int64_t chips, double flops = 0) {
  const double cache = 2 * kTokens * of.hidden;
  const auto share = static_cast<double>(chips);
  const double gemms = 2 * (of.weights() + cache);
  const double layer_s = std::max(flops, gemms) / share / kFlopsPerS +
                         kBytes * (of.weights() + cache) / share / kBytesPerS +
                         reduced_s(of, chips, 1);
  return of.layers * layer_s;
}

// 1187.8, 1809.7 and 1870.1 tokens/s in its logs. Operations are the log's, 31,505,284 on one of 16
// chips: GEMMs are 27,262,976 of them.
TEST(PublishedServing, Decoding) {
  constexpr double kLogged = 16 * 31505284.0;
  const auto tokens_per_s = [&](std::int64_t tensor, std::int64_t stages) {
    DataflowSetup setup;
    setup.chips = 16;
    setup.fabric.dimensions = {{FabricShape::ring, tensor, 50e9, FabricRole::tensor},
                               {FabricShape::ring, stages, 50e9, FabricRole::pipeline}};
    setup.job.layers = 32;
    setup.job.global_batch = 16384;
    setup.graph.kernels.push_back({});
    const double layer_s = decode_s(kLlama8b, tensor, kLogged) / kLlama8b.layers;
    return 16384 / job_time(setup, layer_s, published_job_rules(setup)).time_s;
  };
  EXPECT_NEAR(tokens_per_s(16, 1), 1187.8, 0.05);
  EXPECT_NEAR(tokens_per_s(4, 4), 1809.7, 0.05);
  EXPECT_NEAR(tokens_per_s(1, 16), 1870.1, 0.05);
}

// TTFT 87.0 ms and 47.1 k tokens/s are one figure: 4,096 tokens. All pairs of tokens are computed,
// and parameters are not read from memory, other than for a token that is decoded; with them it
// would be 87.5 ms.
TEST(PublishedServing, Prefill) {
  const double gemms = 2 * kTokens * (kLlama8b.weights() + 2 * kTokens * kLlama8b.hidden);
  const double layer_s = gemms / 16 / kFlopsPerS + reduced_s(kLlama8b, 16, kTokens);
  const double ttft_s = kLlama8b.layers * layer_s;
  EXPECT_NEAR(ttft_s, 87.0e-3, 0.05e-3);
  EXPECT_NEAR(kTokens / ttft_s, 47.1e3, 50);
  const double read_s = kBytes * kLlama8b.weights() / 16 / kBytesPerS;
  EXPECT_GT(ttft_s + kLlama8b.layers * read_s, 87.05e-3);
}

double published(const PublishedDecoder& draft, double acceptance, std::int64_t k,
                 std::int64_t width) {
  return test::published_tokens_per_s({acceptance, k, width}, decode_s(draft, 16),
                                      decode_s(kLlama405b, 16));
}

// Section VIII-B, target 405B: the figure has no numbers, so its three observations are tested.
TEST(PublishedServing, SpeculationByItsOwnCount) {
  for (const double acceptance : {0.3, 0.6, 0.9}) {
    // Sequences: the small and the medium draft are close, the large one is far behind …
    EXPECT_GT(published(kLlama8b, acceptance, 4, 1), 0.85 * published(kLlama68m, acceptance, 4, 1));
    EXPECT_LT(published(kLlama70b, acceptance, 4, 1), 0.7 * published(kLlama68m, acceptance, 4, 1));
    // … and of both, longer windows and higher acceptances are faster.
    for (const PublishedDecoder& draft : {kLlama68m, kLlama8b}) {
      for (std::int64_t k = 1; k < 8; ++k) {
        EXPECT_GT(published(draft, acceptance, k + 1, 1), published(draft, acceptance, k, 1));
        EXPECT_GT(published(draft, acceptance + 0.1, k, 1), published(draft, acceptance, k, 1));
      }
    }
    // Trees of the medium draft are slower than no drafts from some window on, of the small one
    // faster up to a short one and slower after it.
    EXPECT_LT(published(kLlama8b, acceptance, 8, 2), published(kLlama8b, 0, 0, 1));
    EXPECT_GT(published(kLlama68m, acceptance, 4, 2), published(kLlama8b, acceptance, 4, 2));
    EXPECT_LT(published(kLlama68m, acceptance, 12, 2), published(kLlama68m, acceptance, 6, 2));
  }
}

// With drafts that are accepted independently, longer windows do not go on to be faster.
TEST(PublishedServing, SpeculationByTheRightExpectation) {
  const double draft_s = decode_s(kLlama8b, 16), target_s = decode_s(kLlama405b, 16);
  const auto tokens_per_s = [&](std::int64_t k) {
    return expected_tokens({0.6, k, 1}) / (static_cast<double>(k) * draft_s + target_s);
  };
  EXPECT_GT(tokens_per_s(5), tokens_per_s(1));
  EXPECT_GT(tokens_per_s(5), tokens_per_s(16));
  // Eight drafts at 0.6: 5.8 tokens a round as counted there, 2.5 as they come.
  EXPECT_NEAR(test::linear_expected_tokens({0.6, 8, 1}), 5.8, 1e-12);
  EXPECT_NEAR(expected_tokens({0.6, 8, 1}), 2.475, 1e-3);
}

}  // namespace
}  // namespace braid
