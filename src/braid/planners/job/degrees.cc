#include "braid/planners/job/degrees.h"

#include <algorithm>

namespace braid {

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    if (d <= most) found.push_back(static_cast<int>(d));
    if (d != number / d && number / d <= most) found.push_back(static_cast<int>(number / d));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Degrees::Degrees(std::vector<int> values, int most) : values_(std::move(values)), most_(most) {
  std::sort(values_.begin(), values_.end());
  values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
}

bool Degrees::allows(std::int64_t value) const {
  if (value > most_) return false;
  return values_.empty() || std::binary_search(values_.begin(), values_.end(), value);
}

std::optional<int> Degrees::single() const {
  if (values_.empty()) return most_ == 1 ? std::optional<int>(1) : std::nullopt;
  const bool one = values_.front() <= most_ && (values_.size() == 1 || values_[1] > most_);
  return one ? std::optional<int>(values_.front()) : std::nullopt;
}

std::optional<int> Degrees::at_least(int least) const {
  int found = least;
  if (!values_.empty()) {
    const auto first = std::lower_bound(values_.begin(), values_.end(), least);
    if (first == values_.end()) return std::nullopt;
    found = *first;
  }
  return found <= most_ ? std::optional<int>(found) : std::nullopt;
}

int Degrees::at_most(std::int64_t most) const {
  const std::int64_t last = std::min<std::int64_t>(most, most_);
  if (values_.empty()) return static_cast<int>(std::max<std::int64_t>(0, last));
  const auto above = std::upper_bound(values_.begin(), values_.end(), last);
  return above == values_.begin() ? 0 : *(above - 1);
}

std::vector<int> Degrees::among(std::vector<int> candidates) const {
  std::erase_if(candidates, [this](int candidate) { return !allows(candidate); });
  return candidates;
}

std::vector<std::pair<int, int>> Degrees::runs(int first, int last) const {
  last = std::min(last, most_);
  if (first > last) return {};
  if (values_.empty()) return {{first, last}};
  std::vector<std::pair<int, int>> found;
  for (const int value : values_) {
    if (value < first || value > last) continue;
    if (!found.empty() && found.back().second + 1 == value) {
      found.back().second = value;
    } else {
      found.emplace_back(value, value);
    }
  }
  return found;
}

std::string Degrees::text() const {
  std::string text;
  for (const int value : values_) text += (text.empty() ? "" : ", ") + std::to_string(value);
  if (most_ == kNoLimit) return text;
  return text + (text.empty() ? "" : ", ") + "at most " + std::to_string(most_);
}

}  // namespace braid
