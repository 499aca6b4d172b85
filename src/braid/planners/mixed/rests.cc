#include "braid/planners/mixed/rests.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

/// Rests kept in one list.
constexpr int kMost = 4;

bool no_worse(const MixedRest& a, const MixedRest& b) {
  return a.below_s <= b.below_s && a.first_s <= b.first_s && a.late_s <= b.late_s &&
         a.rise_s <= b.rise_s && a.peak_s <= b.peak_s;
}

}  // namespace

void MixedRests::insert(std::size_t cell, MixedRest rest) {
  int count = 0;
  std::int32_t free = -1, nearest = -1, before = -1;
  const auto rest_at = [this](std::int32_t number) -> MixedRest& {
    return rests_[static_cast<std::size_t>(number)];
  };
  for (std::int32_t number = heads_[cell]; number >= 0;) {
    MixedRest& known = rest_at(number);
    if (no_worse(known, rest)) return;
    const std::int32_t next = known.next;
    if (no_worse(rest, known)) {
      (before < 0 ? heads_[cell] : rest_at(before).next) = next;
      free = number;
    } else {
      const auto away = [&](std::int32_t other) {
        return std::abs(rest_at(other).below_s - rest.below_s);
      };
      if (nearest < 0 || away(number) < away(nearest)) nearest = number;
      before = number;
      ++count;
    }
    number = next;
  }
  if (count >= kMost) {
    MixedRest& known = rest_at(nearest);
    MixedRest both = rest.below_s < known.below_s ? rest : known;
    both.first_s = std::min(rest.first_s, known.first_s);
    both.late_s = std::min(rest.late_s, known.late_s);
    both.rise_s = std::min(rest.rise_s, known.rise_s);
    both.peak_s = std::min(rest.peak_s, known.peak_s);
    both.next = known.next;
    known = both;
    return;
  }
  if (free < 0) {
    free = static_cast<std::int32_t>(rests_.size());
    rests_.emplace_back();
  }
  rest.next = heads_[cell];
  heads_[cell] = free;
  rest_at(free) = rest;
}

}  // namespace braid
