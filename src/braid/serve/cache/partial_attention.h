#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid {

/// Heads of one layer; queries of `heads` share keys and values of `kv_heads`, which divides it.
struct AttentionHeads {
  std::size_t heads = 1, kv_heads = 1, head_dim = 1;
  double scale = 1;         ///< Of the products of queries and keys, usually head_dim^-1/2.
  std::int64_t window = 0;  ///< A query sees its own token and window - 1 before it; 0: all.

  std::size_t query_size() const { return heads * head_dim; }
  std::size_t key_size() const { return kv_heads * head_dim; }
  /// Numbers of a partial result.
  std::size_t partial_size() const { return heads * (head_dim + 2); }
};

/// What one device keeps of one sequence: for each of its tokens a key and a value, kv_heads ×
/// head_dim numbers each, and the token's place in the sequence. In any order.
struct CacheShard {
  std::span<const double> keys, values;
  std::span<const std::int64_t> places;
};

/// Attention of one token's query to the tokens of a shard that it sees, those at its `place` and
/// before. `partial` gets for each head m, s and head_dim numbers o:
///
///     m = max q·k,   s = Σ exp(q·k - m),   o = Σ exp(q·k - m) v / s
///
/// with q·k scaled; where the shard has no token to see, m = -∞, s = 0 and o = 0. One pass over the
/// shard; cost heads · head_dim · tokens, allocates nothing.
void partial_attention(const AttentionHeads& heads, std::span<const double> query,
                       std::int64_t place, const CacheShard& shard, std::span<double> partial);

/// Makes of two disjoint sets of tokens the result for both, in `into`:
///
///     M = max(m, m'),   s″ = s e^(m-M) + s' e^(m'-M),   o″ = (o s e^(m-M) + o' s' e^(m'-M)) / s″
///
/// Associative and commutative but for rounding; the empty result is its neutral element.
void merge_partials(const AttentionHeads& heads, std::span<const double> partial,
                    std::span<double> into);

/// The empty result.
void clear_partial(const AttentionHeads& heads, std::span<double> partial);

/// The heads × head_dim numbers o of a result.
void attention_output(const AttentionHeads& heads, std::span<const double> partial,
                      std::span<double> output);

}  // namespace braid
