#include "braid/base/suggest.h"

#include <algorithm>
#include <optional>

#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::size_t kLongestWord = 100;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Edit distance with swaps of neighbouring characters ("optimal string alignment").
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> two_up(b.size() + 1);
  std::vector<int> up(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_up.swap(up);
    up.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_up[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

// What stands between dashes, dots and the like.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of("-_./ :", begin), name.size());
    if (end > begin) parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Whether the word has all parts of the candidate: "meta-llama/llama-3.1-8b" those of "llama-3-8b".
bool has_parts_of(std::string_view word, std::string_view candidate) {
  const std::vector<std::string_view> has = parts_of(word), wanted = parts_of(candidate);
  return std::ranges::all_of(
      wanted, [&](std::string_view part) { return std::ranges::find(has, part) != has.end(); });
}

// Smaller is nearer; nullopt when not near at all. Abbreviations come before typing mistakes, and
// those before other parts of names; of longer words, the more a candidate has of them the better.
std::optional<int> farness(std::string_view word, std::string_view candidate) {
  if (candidate.empty() || candidate.size() > kLongestWord) return std::nullopt;
  const std::size_t shorter = std::min(word.size(), candidate.size());
  const auto gap = static_cast<int>(std::max(word.size(), candidate.size()) - shorter);
  if (word.size() >= 3 && candidate.starts_with(word)) return gap;
  const int distance = edit_distance(word, candidate);
  if (distance <= std::max(1, static_cast<int>(shorter) / 3)) return 1000 + distance;
  if (shorter >= 2 && (candidate.starts_with(word) || word.starts_with(candidate))) {
    return 2000 + gap;
  }
  if (word.size() >= 3 && candidate.find(word) != std::string_view::npos) return 3000 + gap;
  if (candidate.size() >= 3 && candidate.size() < word.size() && has_parts_of(word, candidate)) {
    return 4000 + gap;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> nearest_few(std::string_view word,
                                     std::span<const std::string_view> candidates,
                                     std::size_t most) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string wanted = lower(word);
  std::vector<std::pair<int, std::string_view>> near;
  for (const std::string_view candidate : candidates) {
    if (const auto far = farness(wanted, lower(candidate))) near.emplace_back(*far, candidate);
  }
  std::ranges::stable_sort(near, {}, &std::pair<int, std::string_view>::first);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < near.size() && i < most; ++i) result.emplace_back(near[i].second);
  return result;
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  const auto few = nearest_few(word, candidates, 1);
  return few.empty() ? std::string() : few.front();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string best = nearest(word, candidates); !best.empty()) {
    return "did you mean " + in_quotes(best) + "?";
  }
  constexpr std::size_t kLongestList = 400;
  std::string list;
  for (const std::string_view candidate : candidates) {
    if (list.size() + candidate.size() > kLongestList) {
      list += ", …";
      break;
    }
    if (!list.empty()) list += ", ";
    list += candidate;
  }
  return list.empty() ? list : "known: " + list;
}

}  // namespace braid
