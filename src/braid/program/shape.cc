#include "braid/program/shape.h"

#include <fmt/format.h>

#include "braid/base/index.h"

namespace braid {

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

Shape row_major_strides(std::span<const std::int64_t> shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::int64_t> strided_places(std::span<const std::int64_t> shape,
                                         std::span<const std::int64_t> strides,
                                         std::int64_t first) {
  std::vector<std::int64_t> places(at(element_count(shape)));
  Shape index(shape.size(), 0);
  std::int64_t place = first;
  for (std::int64_t& each : places) {
    each = place;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += strides[d];
      if (++index[d] < shape[d]) break;
      place -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return places;
}

RowPlaces row_places(std::span<const std::int64_t> shape, const std::vector<bool>& is_axis) {
  const Shape strides = row_major_strides(shape);
  Shape kept, kept_strides, along, along_strides;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (is_axis[d] ? along : kept).push_back(shape[d]);
    (is_axis[d] ? along_strides : kept_strides).push_back(strides[d]);
  }
  return {strided_places(kept, kept_strides), strided_places(along, along_strides)};
}

std::vector<std::int64_t> broadcast_places(std::span<const std::int64_t> in,
                                           std::span<const std::int64_t> out) {
  const Shape strides = row_major_strides(in);
  Shape spread(out.size(), 0);
  const std::size_t added = out.size() - in.size();
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] != 1) spread[added + d] = strides[d];
  }
  return strided_places(out, spread);
}

}  // namespace braid
