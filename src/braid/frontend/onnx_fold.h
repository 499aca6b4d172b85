#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "braid/frontend/onnx_node.h"

namespace braid {

/// Most elements of values that are computed while the model is read: shapes, axes, indices.
inline constexpr std::int64_t most_folded = 256;

/// Computes the values of a pointwise node (arithmetic, comparisons, Where, Cast) whose operands'
/// values are known and few. Leaves them unknown where the arithmetic has no result (division by
/// zero, overflow) or is not one of those that shapes are computed with.
void fold_pointwise(OnnxNodeView& node);

/// Where the elements of a tensor lie, in row-major order.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims);

/// Whether output 0 is small enough for its values to be kept.
bool is_small(const OnnxNodeView& node);

/// The values of an output 0 each of whose elements is one of operand 0: the element at place
/// `of(indices)` of its values, for the indices along the output's dimensions. Nothing happens when
/// the operand's values are not known or the output is large.
template <typename Place>
void fold_places(OnnxNodeView& node, Place of) {
  const auto& values = node.input(0).values;
  if (!values || !is_small(node)) return;
  const std::vector<std::int64_t> dims = node.results().front().dims;
  std::visit(
      [&](const auto& list) {
        std::remove_cvref_t<decltype(list)> taken;
        std::vector<std::int64_t> indices(dims.size(), 0);
        std::int64_t count = 1;
        for (const std::int64_t size : dims) count *= size;
        for (std::int64_t at = 0; at < count; ++at) {
          taken.push_back(list[static_cast<std::size_t>(of(indices))]);
          for (std::size_t d = dims.size(); d-- > 0;) {
            if (++indices[d] < dims[d]) break;
            indices[d] = 0;
          }
        }
        node.set_values(0, std::move(taken));
      },
      *values);
}

}  // namespace braid
