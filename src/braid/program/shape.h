#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid {

/// The sizes of a tensor along its dimensions, outermost first; empty for a scalar.
using Shape = std::vector<std::int64_t>;

/// Elements of a tensor: the product of its sizes, 1 for a scalar.
std::int64_t element_count(std::span<const std::int64_t> shape);

/// Elements between neighbours along each dimension of a row-major tensor.
Shape row_major_strides(std::span<const std::int64_t> shape);

/// "[2, 3]".
std::string shape_text(std::span<const std::int64_t> shape);

/// The element `first + Σ index[d] · strides[d]` for every index of `shape`, in row-major order.
/// With permuted strides this transposes, with strides of 0 it broadcasts, with multiples of the
/// strides it slices.
std::vector<std::int64_t> strided_places(std::span<const std::int64_t> shape,
                                         std::span<const std::int64_t> strides,
                                         std::int64_t first = 0);

/// Where the elements of a row-major tensor lie when it is taken as rows along `axes`: element
/// `column` of row `row` is at `starts[row] + offsets[column]`. Rows are in row-major order of the
/// other dimensions.
struct RowPlaces {
  std::vector<std::int64_t> starts, offsets;
};
RowPlaces row_places(std::span<const std::int64_t> shape, const std::vector<bool>& is_axis);

/// For every element of `out`, the one of `in` that is broadcast to it as NumPy does.
/// Precondition: `in` can be broadcast to `out`.
std::vector<std::int64_t> broadcast_places(std::span<const std::int64_t> in,
                                           std::span<const std::int64_t> out);

}  // namespace braid
