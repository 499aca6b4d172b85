#include "braid/serve/cache/partial_attention.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "serve/cache/attention_reference.h"

namespace braid {
namespace {

using test::most_apart;
using test::plain_attention;
using test::random_numbers;

/// Tokens of one sequence dealt to shards by `shard_of`.
struct Shards {
  std::vector<std::vector<double>> keys, values;
  std::vector<std::vector<std::int64_t>> places;
};

Shards dealt(const AttentionHeads& heads, const std::vector<double>& keys,
             const std::vector<double>& values, const std::vector<std::size_t>& shard_of,
             std::size_t shards) {
  Shards result{std::vector<std::vector<double>>(shards), std::vector<std::vector<double>>(shards),
                std::vector<std::vector<std::int64_t>>(shards)};
  for (std::size_t t = 0; t < shard_of.size(); ++t) {
    const auto first = static_cast<std::ptrdiff_t>(t * heads.key_size());
    const auto last = first + static_cast<std::ptrdiff_t>(heads.key_size());
    auto& to_keys = result.keys[shard_of[t]];
    auto& to_values = result.values[shard_of[t]];
    to_keys.insert(to_keys.end(), keys.begin() + first, keys.begin() + last);
    to_values.insert(to_values.end(), values.begin() + first, values.begin() + last);
    result.places[shard_of[t]].push_back(static_cast<std::int64_t>(t));
  }
  return result;
}

std::vector<double> merged(const AttentionHeads& heads, const std::vector<double>& query,
                           std::int64_t place, const Shards& shards) {
  std::vector<double> all(heads.partial_size()), one(heads.partial_size());
  clear_partial(heads, all);
  for (std::size_t r = 0; r < shards.keys.size(); ++r) {
    partial_attention(heads, query, place, {shards.keys[r], shards.values[r], shards.places[r]},
                      one);
    merge_partials(heads, one, all);
  }
  std::vector<double> output(heads.query_size());
  attention_output(heads, all, output);
  return output;
}

/// A random case: heads that share keys, windows, lengths, and any split with empty shards.
struct RandomCase {
  explicit RandomCase(std::mt19937& random) {
    const auto pick = [&](std::size_t most) { return std::size_t{1} + random() % most; };
    heads.kv_heads = pick(3);
    heads.heads = heads.kv_heads * pick(4);
    heads.head_dim = pick(16);
    heads.scale = 1 / std::sqrt(static_cast<double>(heads.head_dim));
    const std::size_t tokens = pick(200);
    if (random() % 3 == 0) heads.window = static_cast<std::int64_t>(pick(tokens + 10));
    place = static_cast<std::int64_t>(tokens) - 1;
    query = random_numbers(random, heads.query_size(), 3);
    keys = random_numbers(random, tokens * heads.key_size(), 3);
    values = random_numbers(random, tokens * heads.key_size());
    shards = pick(9);
    const std::size_t used = pick(shards);
    for (std::size_t t = 0; t < tokens; ++t) shard_of.push_back(random() % used);
  }
  AttentionHeads heads;
  std::int64_t place = 0;
  std::vector<double> query, keys, values;
  std::size_t shards = 1;
  std::vector<std::size_t> shard_of;
};

TEST(PartialAttention, AnySplitIsTheWhole) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const RandomCase of(random);
    const auto expected = plain_attention(of.heads, of.query, of.place, of.keys, of.values);
    const Shards shards = dealt(of.heads, of.keys, of.values, of.shard_of, of.shards);
    EXPECT_LE(most_apart(merged(of.heads, of.query, of.place, shards), expected), 1e-12) << trial;
  }
}

TEST(PartialAttention, LargeProductsNeitherOverflowNorVanish) {
  const AttentionHeads heads{1, 1, 1, 1, 0};
  // exp(2000) is no number: the token of the greatest product takes all.
  const std::vector<double> keys{2000, -2000, 1999}, values{1, 5, 3};
  const Shards shards = dealt(heads, keys, values, {0, 1, 2}, 3);
  const double share = 1 / (1 + std::exp(-1));
  EXPECT_NEAR(merged(heads, {1}, 2, shards)[0], share + 3 * (1 - share), 1e-12);
}

TEST(PartialAttention, NothingSeenIsNeutral) {
  const AttentionHeads heads{2, 1, 3, 1, 2};
  std::vector<double> partial(heads.partial_size(), 7);
  const std::vector<double> keys(3, 1), query(6, 1);
  const std::vector<std::int64_t> old{0};
  partial_attention(heads, query, 9, {keys, keys, old}, partial);
  EXPECT_EQ(partial[0], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(partial[1], 0);
  std::mt19937 random(2);
  std::vector<double> some = random_numbers(random, heads.partial_size());
  for (std::size_t h = 0; h < heads.heads; ++h) some[h * 5 + 1] = 2;
  std::vector<double> into = some;
  merge_partials(heads, partial, into);
  EXPECT_LE(most_apart(into, some), 1e-15);
  into = partial;
  merge_partials(heads, some, into);
  EXPECT_LE(most_apart(into, some), 1e-15);
  into = partial;
  merge_partials(heads, partial, into);
  EXPECT_EQ(into, partial);
}

/// That the comparison notices a wrong merge: one without the weights of the sums.
TEST(PartialAttention, PlainMeansOfPartsAreFarOff) {
  std::mt19937 random(3);
  const AttentionHeads heads{2, 2, 8, 0.35, 0};
  const std::size_t tokens = 50;
  const auto query = random_numbers(random, heads.query_size());
  const auto keys = random_numbers(random, tokens * heads.key_size());
  const auto values = random_numbers(random, tokens * heads.key_size());
  std::vector<std::size_t> shard_of(tokens, 0);
  for (std::size_t t = 40; t < tokens; ++t) shard_of[t] = 1;
  const Shards shards = dealt(heads, keys, values, shard_of, 2);
  std::vector<double> mean(heads.query_size(), 0), partial(heads.partial_size());
  for (std::size_t r = 0; r < 2; ++r) {
    partial_attention(heads, query, 49, {shards.keys[r], shards.values[r], shards.places[r]},
                      partial);
    std::vector<double> output(heads.query_size());
    attention_output(heads, partial, output);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += output[i] / 2;
  }
  EXPECT_GT(most_apart(mean, plain_attention(heads, query, 49, keys, values)), 1e-3);
}

}  // namespace
}  // namespace braid
