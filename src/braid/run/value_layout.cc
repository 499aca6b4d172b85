#include "braid/run/value_layout.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t result = 1;
  for (std::size_t d = first; d < last; ++d) result *= shape[d];
  return result;
}

/// Appends, joining what continues the last.
void append(std::vector<Interval>& intervals, const Interval& next) {
  if (next.length() <= 0) return;
  if (!intervals.empty() && intervals.back().last == next.first) {
    intervals.back().last = next.last;
  } else {
    intervals.push_back(next);
  }
}

}  // namespace

std::int64_t total_length(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const Interval& each : intervals) sum += each.length();
  return sum;
}

ValueLayout even_layout(std::int32_t axis, std::int64_t size, int ranks) {
  ValueLayout layout{axis, size, 1, {}};
  const std::int64_t most = (size + ranks - 1) / ranks;
  for (std::int64_t r = 0; r < ranks; ++r) {
    layout.held.emplace_back();
    append(layout.held.back(), {std::min(r * most, size), std::min((r + 1) * most, size)});
  }
  return layout;
}

bool is_even(const ValueLayout& layout) {
  if (layout.is_whole() || layout.repeats > 1) return false;
  const ValueLayout even =
      even_layout(layout.axis, layout.units, static_cast<int>(layout.held.size()));
  return layout.units % std::ssize(layout.held) == 0 && layout.held == even.held;
}

std::optional<std::vector<Interval>> held_indices(const ValueLayout& layout, const Shape& shape,
                                                  std::size_t rank) {
  if (layout.repeats > 1) return std::nullopt;
  const std::int64_t size = shape[at(layout.axis)];
  std::vector<Interval> result;
  for (const Interval& each : layout.held[rank]) {
    const std::int64_t first = each.first * size, last = each.last * size;
    if (first % layout.units != 0 || last % layout.units != 0) return std::nullopt;
    append(result, {first / layout.units, last / layout.units});
  }
  return result;
}

std::optional<ValueLayout> reshaped_layout(const ValueLayout& layout, const Shape& from,
                                           const Shape& to) {
  const std::int64_t before = product(from, 0, at(layout.axis)) * layout.repeats;
  std::int64_t passed = 1;
  for (std::size_t d = 0; d < to.size(); passed *= to[d], ++d) {
    // Dimensions of 1 that lie in front are passed over.
    if (passed * to[d] <= before || to[d] == 1) continue;
    if (before % passed != 0 || to[d] % (before / passed) != 0) return std::nullopt;
    ValueLayout result = layout;
    result.axis = static_cast<std::int32_t>(d);
    result.repeats = before / passed;
    return result;
  }
  return std::nullopt;
}

std::optional<ValueLayout> sliced_layout(const ValueLayout& layout, std::int64_t size,
                                         const Interval& cut) {
  if (layout.repeats > 1) return std::nullopt;
  // Units as fine as indices, so that any bound is one of a unit.
  if (layout.units > size ? layout.units % size != 0 : size % layout.units != 0) {
    return std::nullopt;
  }
  const std::int64_t finer = std::max<std::int64_t>(1, size / layout.units);
  const std::int64_t per_index = std::max<std::int64_t>(1, layout.units / size);
  ValueLayout result{layout.axis, cut.length() * per_index, 1, {}};
  for (const std::vector<Interval>& held : layout.held) {
    result.held.emplace_back();
    for (const Interval& each : held) {
      const std::int64_t first = std::max(each.first * finer, cut.first * per_index);
      const std::int64_t last = std::min(each.last * finer, cut.last * per_index);
      append(result.held.back(), {first - cut.first * per_index, last - cut.first * per_index});
    }
  }
  return result;
}

std::optional<Shape> held_shape(const ValueLayout& layout, const Shape& shape, std::size_t rank) {
  Shape result = shape;
  if (layout.is_whole()) return result;
  const std::size_t axis = at(layout.axis);
  const std::int64_t units = total_length(layout.held[rank]);
  if (shape[axis] * units % layout.units == 0) {
    result[axis] = shape[axis] * units / layout.units;
    return result;
  }
  const bool is_part = shape[axis] * units < layout.units && axis + 1 < shape.size();
  const std::int64_t rest = is_part ? shape[axis] * shape[axis + 1] * units : 0;
  if (!is_part || rest % layout.units != 0) return std::nullopt;
  result[axis] = 1;
  result[axis + 1] = rest / layout.units;
  return result;
}

}  // namespace braid
