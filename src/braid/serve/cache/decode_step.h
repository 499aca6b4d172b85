#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/serve/cache/decode_link.h"
#include "braid/serve/cache/decode_traffic.h"
#include "braid/serve/cache/partial_attention.h"

namespace braid {

/// Keys and values that one rank keeps, of each sequence those of some of its tokens.
class RankCache {
 public:
  RankCache(const AttentionHeads& heads, std::size_t sequences);
  void append(std::size_t sequence, std::int64_t place, std::span<const double> key,
              std::span<const double> value);
  CacheShard of(std::size_t sequence) const;
  const AttentionHeads& heads() const { return heads_; }

 private:
  struct Tokens {
    std::vector<double> keys, values;
    std::vector<std::int64_t> places;
  };
  AttentionHeads heads_;
  std::vector<Tokens> sequences_;
};

/// One step of one layer for all sequences, as every rank knows it.
struct DecodeStep {
  DecodeScheme scheme = DecodeScheme::data;
  std::vector<std::int32_t> home;  ///< Of each sequence, the rank that computes all but attention.
  std::vector<std::int64_t> places;  ///< Of each sequence's new token.
};

/// The rank that keeps a token where caches are split: in turn by places, but new tokens at home
/// with `cache_newest`.
std::int32_t keeper_of(const DecodeStep& step, std::size_t sequence, std::int32_t ranks);

/// Query, key and value of a new token for each sequence that a rank computes: those at home, in
/// their order; with `tensor` all of them, in the rank's own heads.
struct NewTokens {
  std::vector<double> queries, keys, values;
};

/// Appends the new tokens and attends to all tokens of each sequence. Returns heads × head_dim
/// numbers for each sequence at home; with `tensor`, whose rank r has the r-th part of the heads,
/// for all sequences and the heads of all ranks. Partial results are merged in the ranks' order, so
/// every run gives the same bytes. What is sent is decode_traffic() with eight bytes a number,
/// where ranks have equally many sequences.
std::vector<double> decode_step(const DecodeStep& step, const NewTokens& own, RankCache& cache,
                                DecodeLink& link);

}  // namespace braid
