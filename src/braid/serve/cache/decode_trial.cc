#include "braid/serve/cache/decode_trial.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"

namespace braid {
namespace {

/// The finaliser of splitmix64.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

AttentionHeads heads_of_rank(const DecodeTrial& trial, DecodeScheme scheme) {
  AttentionHeads heads = trial.heads;
  if (scheme != DecodeScheme::tensor) return heads;
  assert(heads.kv_heads % at(trial.ranks) == 0);
  heads.heads /= at(trial.ranks);
  heads.kv_heads /= at(trial.ranks);
  return heads;
}

}  // namespace

std::vector<double> trial_numbers(const DecodeTrial& trial, TokenPart part, std::size_t sequence,
                                  std::int64_t place) {
  const bool query = part == TokenPart::query;
  std::vector<double> numbers(query ? trial.heads.query_size() : trial.heads.key_size());
  const std::uint64_t token =
      mixed(mixed(trial.seed + static_cast<std::uint64_t>(part)) + (std::uint64_t{sequence} << 32) +
            static_cast<std::uint64_t>(place));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    constexpr double kUnit = 1.0 / (std::uint64_t{1} << 52);
    numbers[i] = static_cast<double>(mixed(token + i) >> 11) * kUnit - 1;
  }
  return numbers;
}

RankTrial::RankTrial(const DecodeTrial& trial, DecodeScheme scheme, std::int32_t rank)
    : trial_(trial),
      rank_(rank),
      step_{scheme, trial.home, trial.prefixes},
      cache_(heads_of_rank(trial, scheme), trial.prefixes.size()) {
  for (std::size_t b = 0; b < trial.prefixes.size(); ++b) {
    if (!splits_cache(scheme) && !computes(b)) continue;
    for (std::int64_t place = 0; place < trial.prefixes[b]; ++place) {
      if (splits_cache(scheme) && place % trial.ranks != rank) continue;
      cache_.append(b, place, own_heads(TokenPart::key, b, place),
                    own_heads(TokenPart::value, b, place));
    }
  }
}

std::vector<double> RankTrial::own_heads(TokenPart part, std::size_t sequence,
                                         std::int64_t place) const {
  std::vector<double> numbers = trial_numbers(trial_, part, sequence, place);
  if (step_.scheme != DecodeScheme::tensor) return numbers;
  const auto size = std::ssize(numbers) / trial_.ranks;
  const auto first = numbers.begin() + rank_ * size;
  return {first, first + size};
}

bool RankTrial::computes(std::size_t sequence) const {
  return step_.scheme == DecodeScheme::tensor || step_.home[sequence] == rank_;
}

std::vector<std::size_t> RankTrial::returned() const {
  std::vector<std::size_t> sequences;
  for (std::size_t b = 0; b < step_.home.size(); ++b) {
    if (computes(b)) sequences.push_back(b);
  }
  return sequences;
}

std::vector<double> RankTrial::step(DecodeLink& link) {
  NewTokens own;
  const auto add = [&](std::vector<double>& to, TokenPart part, std::size_t b) {
    const std::vector<double> numbers = own_heads(part, b, step_.places[b]);
    to.insert(to.end(), numbers.begin(), numbers.end());
  };
  for (const std::size_t b : returned()) {
    add(own.queries, TokenPart::query, b);
    add(own.keys, TokenPart::key, b);
    add(own.values, TokenPart::value, b);
  }
  std::vector<double> output = decode_step(step_, own, cache_, link);
  for (std::int64_t& place : step_.places) ++place;
  return output;
}

}  // namespace braid
