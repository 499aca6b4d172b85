#include "braid/planners/mixed/suffixes.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

/// Suffixes kept in one list.
constexpr int kMost = 4;

bool no_worse(const MixedSuffix& a, const MixedSuffix& b) {
  return a.below_s <= b.below_s && a.first_s <= b.first_s && a.late_s <= b.late_s &&
         a.rise_s <= b.rise_s && a.peak_s <= b.peak_s;
}

}  // namespace

void MixedSuffixes::insert(std::size_t cell, MixedSuffix suffix) {
  int count = 0;
  std::int32_t free = -1, nearest = -1, before = -1;
  const auto suffix_at = [this](std::int32_t number) -> MixedSuffix& {
    return suffixes_[static_cast<std::size_t>(number)];
  };
  for (std::int32_t number = heads_[cell]; number >= 0;) {
    MixedSuffix& known = suffix_at(number);
    if (no_worse(known, suffix)) return;
    const std::int32_t next = known.next;
    if (no_worse(suffix, known)) {
      (before < 0 ? heads_[cell] : suffix_at(before).next) = next;
      free = number;
    } else {
      const auto away = [&](std::int32_t other) {
        return std::abs(suffix_at(other).below_s - suffix.below_s);
      };
      if (nearest < 0 || away(number) < away(nearest)) nearest = number;
      before = number;
      ++count;
    }
    number = next;
  }
  if (count >= kMost) {
    MixedSuffix& known = suffix_at(nearest);
    MixedSuffix both = suffix.below_s < known.below_s ? suffix : known;
    both.first_s = std::min(suffix.first_s, known.first_s);
    both.late_s = std::min(suffix.late_s, known.late_s);
    both.rise_s = std::min(suffix.rise_s, known.rise_s);
    both.peak_s = std::min(suffix.peak_s, known.peak_s);
    both.next = known.next;
    known = both;
    return;
  }
  if (free < 0) {
    free = static_cast<std::int32_t>(suffixes_.size());
    suffixes_.emplace_back();
  }
  suffix.next = heads_[cell];
  heads_[cell] = free;
  suffix_at(free) = suffix;
}

}  // namespace braid
