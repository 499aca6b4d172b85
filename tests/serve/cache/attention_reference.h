#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "braid/serve/cache/partial_attention.h"

namespace braid::test {

inline std::vector<double> random_numbers(std::mt19937& random, std::size_t count,
                                          double spread = 1) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = normal(random);
  return numbers;
}

/// Attention by its definition, all weights at once and in long double.
inline std::vector<double> plain_attention(const AttentionHeads& heads,
                                           const std::vector<double>& query, std::int64_t place,
                                           const std::vector<double>& keys,
                                           const std::vector<double>& values) {
  const std::size_t dim = heads.head_dim, tokens = keys.size() / heads.key_size();
  std::vector<double> output(heads.query_size(), 0);
  for (std::size_t h = 0; h < heads.heads; ++h) {
    const std::size_t g = h * heads.kv_heads / heads.heads;
    std::vector<long double> weights(tokens, 0);
    long double sum = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::int64_t behind = place - static_cast<std::int64_t>(t);
      if (behind < 0 || (heads.window > 0 && behind >= heads.window)) continue;
      long double product = 0;
      for (std::size_t i = 0; i < dim; ++i) {
        product +=
            static_cast<long double>(query[h * dim + i]) * keys[(t * heads.kv_heads + g) * dim + i];
      }
      weights[t] = std::exp(heads.scale * product);
      sum += weights[t];
    }
    for (std::size_t i = 0; i < dim; ++i) {
      long double mean = 0;
      for (std::size_t t = 0; t < tokens; ++t) {
        mean += weights[t] * values[(t * heads.kv_heads + g) * dim + i];
      }
      output[h * dim + i] = sum > 0 ? static_cast<double>(mean / sum) : 0.0;
    }
  }
  return output;
}

inline double most_apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e300;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    if (!(apart <= most)) most = apart;
  }
  return most;
}

}  // namespace braid::test
