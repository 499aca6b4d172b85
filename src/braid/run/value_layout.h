#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/program/shape.h"

namespace braid {

/// The indices from `first` up to, not with, `last`.
struct Interval {
  std::int64_t first = 0, last = 0;
  std::int64_t length() const { return last - first; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Indices of all intervals together.
std::int64_t total_length(const std::vector<Interval>& intervals);

/// Which part of a value each rank of a tensor-parallel group holds: all of it, or some indices
/// along one dimension, in their order. Several ranks may hold the same. Example: of queries, keys
/// and values side by side, of 2 heads of width 4 each, the second of two ranks holds the columns 4
/// to 7, 12 to 15 and 20 to 23.
struct ValueLayout {
  std::int32_t axis = -1;  ///< -1: each rank has all of it.
  /// Equal units that the dimension, with all after it, is counted in. There may be more of them
  /// than indices: heads that share keys, of which a rank has a part.
  std::int64_t units = 1;
  /// How often the dimension goes through what is sharded, as that of the rows of all heads that
  /// share keys does through tokens.
  std::int64_t repeats = 1;
  std::vector<std::vector<Interval>> held;  ///< [rank], in units.

  bool is_whole() const { return axis < 0; }
  friend bool operator==(const ValueLayout&, const ValueLayout&) = default;
};

/// Consecutive indices of a dimension of `size`, as many for each rank; where ranks do not divide
/// it, the last have fewer, or none.
ValueLayout even_layout(std::int32_t axis, std::int64_t size, int ranks);

/// Whether each rank has as many consecutive indices, all of them together once and in order.
bool is_even(const ValueLayout& layout);

/// What a rank holds in indices of the dimension; nullopt where it is a part of one index, and for
/// dimensions that repeat.
std::optional<std::vector<Interval>> held_indices(const ValueLayout& layout, const Shape& shape,
                                                  std::size_t rank);

/// The layout of a reshaped value: the same elements. Nullopt where no dimension of `to` begins
/// where the sharded one of `from` does. Precondition: as many elements, not whole.
std::optional<ValueLayout> reshaped_layout(const ValueLayout& layout, const Shape& from,
                                           const Shape& to);

/// The layout of what is cut out of the sharded dimension, of `size`. Nullopt where a bound lies
/// within a unit, and for dimensions that repeat.
std::optional<ValueLayout> sliced_layout(const ValueLayout& layout, std::int64_t size,
                                         const Interval& cut);

/// The shape of what a rank holds. Where it holds a part of one index, that dimension is 1 and the
/// next is as much shorter. Nullopt where that is not a whole number.
std::optional<Shape> held_shape(const ValueLayout& layout, const Shape& shape, std::size_t rank);

}  // namespace braid
