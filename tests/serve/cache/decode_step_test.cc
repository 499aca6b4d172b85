#include <gtest/gtest.h>

#include "braid/serve/cache/decode_trial.h"

#include "serve/cache/decode_ranks.h"
#include "serve/cache/trial_traffic.h"

namespace braid {
namespace {

using test::most_apart;
using test::plain_attention;

constexpr int kSteps = 3;

struct TrialRun {
  double apart = 0;             ///< From attention over the whole sequence.
  std::vector<double> sent;     ///< Bytes of all ranks together, by step.
  std::vector<double> outputs;  ///< Of all ranks and steps.
};

double step_apart(const DecodeTrial& trial, const RankTrial& rank, std::int64_t done,
                  const std::vector<double>& output) {
  double apart = 0;
  const std::size_t size = trial.heads.query_size();
  const std::vector<std::size_t> returned = rank.returned();
  if (output.size() != returned.size() * size) return 1e300;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    const std::size_t b = returned[i];
    const std::int64_t place = trial.prefixes[b] + done;
    std::vector<double> keys, values;
    for (std::int64_t t = 0; t <= place; ++t) {
      const auto key = trial_numbers(trial, TokenPart::key, b, t);
      const auto value = trial_numbers(trial, TokenPart::value, b, t);
      keys.insert(keys.end(), key.begin(), key.end());
      values.insert(values.end(), value.begin(), value.end());
    }
    const auto expected = plain_attention(
        trial.heads, trial_numbers(trial, TokenPart::query, b, place), place, keys, values);
    const auto first = output.begin() + static_cast<std::ptrdiff_t>(i * size);
    apart =
        std::max(apart, most_apart(expected, {first, first + static_cast<std::ptrdiff_t>(size)}));
  }
  return apart;
}

TrialRun run(const DecodeTrial& trial, DecodeScheme scheme) {
  test::ThreadExchange exchange(trial.ranks);
  std::vector<TrialRun> ranks(at(trial.ranks));
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < trial.ranks; ++r) {
    threads.emplace_back([&, r] {
      test::ThreadLink link(exchange, r, trial.ranks);
      RankTrial rank(trial, scheme, r);
      TrialRun& own = ranks[at(r)];
      double before = 0;
      for (int s = 0; s < kSteps; ++s) {
        const std::vector<double> output = rank.step(link);
        own.apart = std::max(own.apart, step_apart(trial, rank, s, output));
        own.outputs.insert(own.outputs.end(), output.begin(), output.end());
        const auto sent = static_cast<double>(link.sent_bytes());
        own.sent.push_back(sent - before);
        before = sent;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  TrialRun all{0, std::vector<double>(kSteps, 0), {}};
  for (const TrialRun& own : ranks) {
    all.apart = std::max(all.apart, own.apart);
    all.outputs.insert(all.outputs.end(), own.outputs.begin(), own.outputs.end());
    for (std::size_t s = 0; s < own.sent.size(); ++s) all.sent[s] += own.sent[s];
  }
  return all;
}

DecodeTrial random_trial(std::mt19937& random) {
  DecodeTrial trial;
  trial.ranks = 1 + static_cast<std::int32_t>(random() % 4);
  trial.heads.kv_heads = at(trial.ranks) * (1 + random() % 2);
  trial.heads.heads = trial.heads.kv_heads * (1 + random() % 3);
  trial.heads.head_dim = 1 + random() % 6;
  trial.heads.scale = 0.7;
  if (random() % 3 == 0) trial.heads.window = 1 + static_cast<std::int64_t>(random() % 30);
  // Also fewer tokens than ranks, which leaves some with none.
  const std::size_t sequences = at(trial.ranks) * (random() % 3);
  for (std::size_t b = 0; b < sequences; ++b) {
    trial.prefixes.push_back(static_cast<std::int64_t>(random() % 60));
    trial.home.push_back(static_cast<std::int32_t>(b % at(trial.ranks)));
  }
  trial.seed = random();
  return trial;
}

TEST(DecodeStepThreads, EverySchemeIsOneProcess) {
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    const DecodeTrial trial = random_trial(random);
    for (const DecodeScheme scheme : kDecodeSchemes) {
      const TrialRun found = run(trial, scheme);
      EXPECT_LE(found.apart, 1e-12) << i << ' ' << name_of(scheme);
      for (int s = 0; s < kSteps; ++s) {
        EXPECT_NEAR(found.sent[at(s)], test::trial_traffic(trial, scheme, s), 1e-6)
            << i << ' ' << name_of(scheme);
      }
    }
  }
}

TEST(DecodeStepThreads, SequencesMayAllBeAtHomeOnOneRank) {
  const DecodeTrial trial{{4, 2, 5, 0.4, 0}, 2, {7, 30, 1}, {1, 1, 1}, 9};
  for (const DecodeScheme scheme : kDecodeSchemes) {
    EXPECT_LE(run(trial, scheme).apart, 1e-12) << name_of(scheme);
  }
}

TEST(DecodeStepThreads, SameBytesEveryTime) {
  const DecodeTrial trial{{4, 4, 5, 0.4, 0}, 4, {7, 30, 1, 16}, {0, 1, 2, 3}, 9};
  for (const DecodeScheme scheme : kDecodeSchemes) {
    EXPECT_EQ(run(trial, scheme).outputs, run(trial, scheme).outputs) << name_of(scheme);
  }
}

}  // namespace
}  // namespace braid
