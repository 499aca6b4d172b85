#pragma once

#include <cstdint>
#include <vector>

#include "braid/serve/cache/decode_step.h"

namespace braid {

/// Steps of one layer of made-up numbers, to hold ways of decoding against each other. Every number
/// follows from the seed, its sequence and its place, so that ranks make theirs by themselves.
struct DecodeTrial {
  AttentionHeads heads;  ///< Of the whole layer.
  std::int32_t ranks = 1;
  std::vector<std::int64_t> prefixes;  ///< Tokens of each sequence before the first step.
  std::vector<std::int32_t> home;      ///< Of each sequence.
  std::uint64_t seed = 1;
};

/// Query, key or value of one token, for all heads.
enum class TokenPart : std::uint8_t { query, key, value };
std::vector<double> trial_numbers(const DecodeTrial& trial, TokenPart part, std::size_t sequence,
                                  std::int64_t place);

/// One rank's side of a trial by one scheme. With `tensor`, ranks divide the heads of keys.
class RankTrial {
 public:
  /// Fills the cache with the prefixes.
  RankTrial(const DecodeTrial& trial, DecodeScheme scheme, std::int32_t rank);

  /// The next step: what decode_step() returns.
  std::vector<double> step(DecodeLink& link);
  /// The sequences that step() returns, in its order.
  std::vector<std::size_t> returned() const;

 private:
  std::vector<double> own_heads(TokenPart part, std::size_t sequence, std::int64_t place) const;
  bool computes(std::size_t sequence) const;

  DecodeTrial trial_;
  std::int32_t rank_;
  DecodeStep step_;
  RankCache cache_;
};

}  // namespace braid
