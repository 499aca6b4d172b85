#include "braid/serve/cache/partial_attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace braid {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
/// Tokens whose weights are kept at once.
constexpr std::size_t kBlock = 64;

/// Sums side by side, which compilers do at once.
double dot(const double* a, const double* b, std::size_t size) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  double sum = 0;
  for (const double each : sums) sum += each;
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// One head's running result: `out` is m, s and head_dim numbers of Σ exp(q·k - m) v, not divided.
void add_block(std::span<const double> scores, const double* values, std::size_t stride,
               std::span<double> out) {
  const double most = std::max(out[0], *std::max_element(scores.begin(), scores.end()));
  if (most == kNothing) return;
  const std::size_t size = out.size() - 2;
  const double kept = std::exp(out[0] - most);
  out[0] = most;
  out[1] *= kept;
  for (std::size_t i = 0; i < size; ++i) out[2 + i] *= kept;
  for (std::size_t t = 0; t < scores.size(); ++t) {
    if (scores[t] == kNothing) continue;
    const double weight = std::exp(scores[t] - most);
    out[1] += weight;
    const double* value = values + t * stride;
    for (std::size_t i = 0; i < size; ++i) out[2 + i] += weight * value[i];
  }
}

std::span<double> head_of(std::span<double> partial, const AttentionHeads& heads, std::size_t h) {
  return partial.subspan(h * (heads.head_dim + 2), heads.head_dim + 2);
}

}  // namespace

void clear_partial(const AttentionHeads& heads, std::span<double> partial) {
  std::fill(partial.begin(), partial.end(), 0.0);
  for (std::size_t h = 0; h < heads.heads; ++h) head_of(partial, heads, h)[0] = kNothing;
}

void partial_attention(const AttentionHeads& heads, std::span<const double> query,
                       std::int64_t place, const CacheShard& shard, std::span<double> partial) {
  assert(heads.heads % heads.kv_heads == 0);
  assert(query.size() == heads.query_size() && partial.size() == heads.partial_size());
  assert(shard.keys.size() == shard.places.size() * heads.key_size());
  clear_partial(heads, partial);
  const std::size_t shared = heads.heads / heads.kv_heads;
  const std::size_t stride = heads.key_size();
  std::array<double, kBlock> scores;
  for (std::size_t first = 0; first < shard.places.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, shard.places.size() - first);
    for (std::size_t h = 0; h < heads.heads; ++h) {
      const std::size_t at = first * stride + h / shared * heads.head_dim;
      const double* own = query.data() + h * heads.head_dim;
      for (std::size_t t = 0; t < count; ++t) {
        const std::int64_t behind = place - shard.places[first + t];
        const bool seen = behind >= 0 && (heads.window == 0 || behind < heads.window);
        const double* key = shard.keys.data() + at + t * stride;
        scores[t] = seen ? heads.scale * dot(own, key, heads.head_dim) : kNothing;
      }
      add_block({scores.data(), count}, shard.values.data() + at, stride,
                head_of(partial, heads, h));
    }
  }
  for (std::size_t h = 0; h < heads.heads; ++h) {
    const std::span<double> out = head_of(partial, heads, h);
    if (out[1] == 0) continue;
    for (std::size_t i = 2; i < out.size(); ++i) out[i] /= out[1];
  }
}

void merge_partials(const AttentionHeads& heads, std::span<const double> partial,
                    std::span<double> into) {
  assert(partial.size() == heads.partial_size() && into.size() == heads.partial_size());
  const std::size_t stride = heads.head_dim + 2;
  for (std::size_t at = 0; at < into.size(); at += stride) {
    const double* a = partial.data() + at;
    double* b = into.data() + at;
    const double most = std::max(a[0], b[0]);
    if (most == kNothing) continue;
    const double weight_a = a[1] * std::exp(a[0] - most);
    const double weight_b = b[1] * std::exp(b[0] - most);
    const double sum = weight_a + weight_b;
    b[0] = most;
    b[1] = sum;
    for (std::size_t i = 2; i < stride; ++i) b[i] = (a[i] * weight_a + b[i] * weight_b) / sum;
  }
}

void attention_output(const AttentionHeads& heads, std::span<const double> partial,
                      std::span<double> output) {
  assert(output.size() == heads.query_size());
  const std::size_t stride = heads.head_dim + 2;
  for (std::size_t h = 0; h < heads.heads; ++h) {
    const auto from = partial.begin() + static_cast<std::ptrdiff_t>(h * stride + 2);
    std::copy_n(from, heads.head_dim,
                output.begin() + static_cast<std::ptrdiff_t>(h * heads.head_dim));
  }
}

}  // namespace braid
