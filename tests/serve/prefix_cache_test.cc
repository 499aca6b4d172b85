#include "braid/serve/prefix_cache.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/serve/worker_memory.h"

#include "serve/serving_fixture.h"

namespace braid {
namespace {

using test::ServingFixture;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kEndless = std::numeric_limits<double>::infinity();

TracedRequest request_of(double input_tokens, double output_tokens,
                         std::vector<std::int64_t> blocks) {
  TracedRequest request{0, input_tokens, output_tokens};
  request.blocks = std::move(blocks);
  return request;
}

/// Five requests of blocks of 512 tokens, counted by hand.
///
///     1  [1 2 3]    nothing is there                             0
///     2  [1 2 4]    1 and 2                                      1024
///     3  [5 2]      5 is not, so that 2 after it does not count  0
///     4  [1 2 3]    all three; the last token is computed again  1500 - 1
///     5  [1]        1                                            511 of 512
TEST(PrefixCache, HitsAreThoseCountedByHand) {
  const std::vector<TracedRequest> requests = {
      request_of(1500, 10, {1, 2, 3}), request_of(1530, 10, {1, 2, 4}), request_of(700, 10, {5, 2}),
      request_of(1500, 10, {1, 2, 3}), request_of(512, 10, {1})};
  EXPECT_EQ(prefix_block_tokens(requests, "t"), 512);
  EXPECT_THAT(prefix_hits(requests, 512, kEndless), ElementsAre(0, 1024, 0, 1499, 511));
}

/// Room for four blocks; each output takes one. The cache after each, what it drops last:
///
///     1  [1 2]      1 2 a      nothing was there
///     2  [3]        3 b 1 2    a was asked for before 1 and 2
///     3  [1 2]      1 2 c 3    both are there; b goes
///     4  [4 5 6]    4 5 6 d    all else goes
///     5  [1]                   1 is no longer there
TEST(PrefixCache, DropsWhatWasNotAskedForForLongest) {
  const std::vector<TracedRequest> requests = {
      request_of(1000, 1, {1, 2}), request_of(500, 1, {3}), request_of(1000, 1, {1, 2}),
      request_of(1500, 1, {4, 5, 6}), request_of(500, 1, {1})};
  EXPECT_THAT(prefix_hits(requests, 512, 4 * 512), ElementsAre(0, 0, 999, 0, 0));
  EXPECT_THAT(prefix_hits(requests, 512, kEndless), ElementsAre(0, 0, 999, 0, 499));
  EXPECT_THAT(prefix_hits(requests, 512, 0), ElementsAre(0, 0, 0, 0, 0));
}

/// Against a plain list that is searched from one end to the other.
TEST(PrefixCache, AgreesWithAPlainList) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<TracedRequest> requests;
    for (int i = 0; i < 40; ++i) {
      std::vector<std::int64_t> blocks;
      std::int64_t hash = 0;
      for (std::uint32_t n = random() % 5; n > 0; --n) {
        hash = 10 * hash + 1 + static_cast<std::int64_t>(random() % 2);
        blocks.push_back(hash);
      }
      const double input = std::max(1.0, 16.0 * static_cast<double>(blocks.size()));
      requests.push_back(request_of(input, 1 + static_cast<double>(random() % 40), blocks));
    }
    const double most = 1 + static_cast<double>(random() % 30);
    std::deque<std::int64_t> kept;  // Last asked for first; below 0: of an output.
    std::int64_t outputs = 0;
    const auto ask = [&](std::int64_t hash) {
      std::erase(kept, hash);
      kept.push_front(hash);
    };
    std::vector<double> expected;
    for (const TracedRequest& each : requests) {
      double hits = 0;
      for (const std::int64_t hash : each.blocks) {
        if (std::find(kept.begin(), kept.end(), hash) == kept.end()) break;
        ++hits;
      }
      expected.push_back(std::min(16 * hits, each.input_tokens - 1));
      const double own = each.output_tokens + (each.blocks.empty() ? each.input_tokens : 0);
      for (double n = std::ceil(own / 16); n > 0; --n) ask(--outputs);
      for (std::size_t i = each.blocks.size(); i > 0; --i) ask(each.blocks[i - 1]);
      while (static_cast<double>(kept.size()) > most) kept.pop_back();
    }
    EXPECT_EQ(prefix_hits(requests, 16, 16 * most), expected) << trial;
  }
}

TEST(PrefixCache, MoreRoomNeverHurts) {
  std::mt19937 random(3);
  std::vector<TracedRequest> requests;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t first = i < 8 ? i : static_cast<std::int64_t>(random() % 8);
    requests.push_back(request_of(48, 5, {first, 100 + first, 1000 + i}));
  }
  double before = 0;
  for (const double blocks : {1.0, 4.0, 16.0, 64.0, 1e9}) {
    const std::vector<double> hits = prefix_hits(requests, 16, 16 * blocks);
    double sum = 0;
    for (const double each : hits) sum += each;
    EXPECT_GE(sum, before);
    before = sum;
  }
  // All but the first eight have two of three blocks.
  EXPECT_EQ(before, 292 * 32);
}

TEST(PrefixCache, BlocksHaveThePowerOfTwoThatExplainsTheirNumbers) {
  EXPECT_EQ(prefix_block_tokens({request_of(6955, 1, std::vector<std::int64_t>(14)),
                                 request_of(6472, 1, std::vector<std::int64_t>(13))},
                                "t"),
            512);
  // Whole blocks alone.
  EXPECT_EQ(prefix_block_tokens({request_of(47, 1, {1, 2}), request_of(15, 1, {}),
                                 request_of(33, 1, {1, 2}), request_of(81, 1, {1, 2, 3, 4, 5})},
                                "t"),
            16);
  EXPECT_EQ(prefix_block_tokens({request_of(47, 1, {})}, "t"), std::nullopt);
  try {
    prefix_block_tokens({request_of(900, 1, {1, 2}), request_of(900, 1, {1})}, "t.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.jsonl: hash_ids: no size of blocks"));
  }
}

/// Requests that come again and again are planned for what the workers' caches have of them.
TEST(PrefixCache, PlansForWhatTheWorkersHave) {
  std::vector<TracedRequest> requests;
  for (std::int64_t i = 0; i < 40; ++i) {
    std::vector<std::int64_t> blocks;
    for (std::int64_t b = 0; b < 8; ++b) blocks.push_back(100 * (i % 20) + b);
    requests.push_back(request_of(4096, 16, blocks));
    requests.back().arrival_s = static_cast<double>(i);
  }
  const auto planned = [&](double room_tokens) {
    ServingFixture with("llama-3-8b", "dgx-h100:1", "vllm");
    const WorkerMemory memory = worker_memory(with.worker("fp8", {1, 1, 1, 1, 1, 1}), 8192);
    with.system.groups.front().chip.memory.bytes -=
        (memory.room_bytes - room_tokens * memory.token_bytes) / with.engine.memory_share;
    ServingJob job = with.job(4096, 16);
    job.disaggregated = false;
    std::vector<TracedRequest> served = requests;
    PrefixPlan found = plan_with_prefixes(512, job, served);
    EXPECT_TRUE(found.outcome.plan);
    EXPECT_EQ(found.caching.share, job.cached_share);
    EXPECT_DOUBLE_EQ(found.caching.endless_share, 0.5 * 4095 / 4096);
    double cached = 0, there = 0;
    for (const TracedRequest& each : served) cached += each.cached_tokens.value_or(0);
    EXPECT_DOUBLE_EQ(cached / (40 * 4096), job.cached_share);
    // What it is planned for is there.
    for (const double each : prefix_hits(requests, 512, cache_tokens(*found.outcome.plan, job))) {
      there += each;
    }
    EXPECT_GE(there / (40 * 4096), job.cached_share * (1 - 1e-9));
    return std::pair(found.caching.share, found.outcome.plan->requests_per_s);
  };
  // Room for all twenty, and for ten of them, which are gone when they come again.
  const auto [all, fast] = planned(25 * 4200);
  const auto [few, slow] = planned(10 * 4200);
  EXPECT_GT(all, 0.49);
  EXPECT_EQ(few, 0);
  EXPECT_LT(slow, fast);
}

}  // namespace
}  // namespace braid
