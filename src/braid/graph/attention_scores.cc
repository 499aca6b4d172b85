#include "braid/graph/attention_scores.h"

#include <algorithm>

namespace braid {
namespace {

/// Sum of min(p + 1, most) over positions p in [0, n).
double capped_sum(double n, double most) {
  const double rising = std::min(n, most);
  return rising * (rising + 1) / 2 + (n - rising) * most;
}

}  // namespace

double attended_scores(const Attention& attention) {
  const auto queries = static_cast<double>(attention.q_len);
  const auto keys = static_cast<double>(attention.kv_len);
  const auto window = static_cast<double>(attention.window);
  if (!attention.causal && attention.window == 0) return queries * keys;

  // Queries stand at positions [first, keys); those before the first key see none.
  const double first = std::max(0.0, keys - queries);
  if (attention.causal) {
    const double most = attention.window == 0 ? keys : window;
    return capped_sum(keys, most) - capped_sum(first, most);
  }
  // Query p sees the keys [max(0, p - before), min(keys, p + after + 1)).
  const std::int64_t half = attention.window / 2;
  const auto before = static_cast<double>(attention.window - 1 - half);
  const auto after = static_cast<double>(half);
  const auto ends = [&](double n) {  // Sum of min(keys, p + after + 1) over p in [0, n).
    const double rising = std::clamp(keys - after, 0.0, n);
    return rising * (rising - 1) / 2 + rising * (after + 1) + (n - rising) * keys;
  };
  const auto begins = [&](double n) {  // Sum of max(0, p - before) over p in [0, n).
    return n > before ? (n - before - 1) * (n - before) / 2 : 0.0;
  };
  return (ends(keys) - ends(first)) - (begins(keys) - begins(first));
}

}  // namespace braid
