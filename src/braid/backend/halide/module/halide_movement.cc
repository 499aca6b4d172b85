#include <algorithm>

#include "braid/backend/halide/module/halide_network.h"
#include "braid/base/index.h"

// Elements that are found at other coordinates.

namespace braid {
namespace {

using Halide::Expr;

Expr whole(std::int64_t number) { return Expr(static_cast<int>(number)); }

/// Another shape over the same numbers: dimensions that both have in common at either end keep
/// their coordinates, so that rows are still read as rows.
HalideElement reshaped_element(const HalideTensor& x, const Shape& shape) {
  return [x, shape](const HalideExprs& at_result) {
    std::size_t front = 0, back = 0;
    while (front < std::min(shape.size(), x.shape.size()) && shape[front] == x.shape[front]) {
      ++front;
    }
    const std::size_t most = std::min(shape.size(), x.shape.size()) - front;
    while (back < most && shape[shape.size() - 1 - back] == x.shape[x.shape.size() - 1 - back]) {
      ++back;
    }
    Expr place = 0;
    for (std::size_t d = front; d + back < shape.size(); ++d) {
      place = place * whole(shape[d]) + at_result[d];
    }
    HalideExprs coordinates(x.shape.size());
    for (std::size_t d = x.shape.size() - back; d-- > front;) {
      coordinates[d] = d == front ? place : place % whole(x.shape[d]);
      place = place / whole(x.shape[d]);
    }
    for (std::size_t d = 0; d < front; ++d) coordinates[d] = at_result[d];
    for (std::size_t d = 1; d <= back; ++d) {
      coordinates[x.shape.size() - d] = at_result[shape.size() - d];
    }
    return x.element(coordinates);
  };
}

HalideElement transposed_element(const HalideNode& node) {
  const std::vector<std::int64_t>* named = node.call->integers("perm");
  std::vector<std::size_t> from(node.rank());
  for (std::size_t d = 0; d < node.rank(); ++d) {
    from[d] = named == nullptr ? node.rank() - 1 - d : at((*named)[d]);
  }
  return [x = node.operands[0].element, from](const HalideExprs& at_result) {
    HalideExprs coordinates(from.size());
    for (std::size_t d = 0; d < from.size(); ++d) coordinates[from[d]] = at_result[d];
    return x(coordinates);
  };
}

/// Where a slice of constant limits begins and how far it steps, by dimension.
HalideElement slice_element(const HalideNode& node) {
  const NodeCall& call = *node.call;
  const Shape& shape = node.operands[0].shape;
  const auto starts = call.integers_of(1, "starts");
  if (!starts) call.fail("begins where is computed");
  const auto axes = call.integers_of(3, "axes"), steps = call.integers_of(4, "steps");
  Shape begin(shape.size(), 0), step(shape.size(), 1);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t d = call.axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape.size());
    step[d] = steps ? (*steps)[i] : 1;
    const std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + shape[d] : (*starts)[i];
    begin[d] = std::clamp<std::int64_t>(start, 0, step[d] < 0 ? shape[d] - 1 : shape[d]);
  }
  return [x = node.operands[0].element, begin, step](const HalideExprs& at_result) {
    HalideExprs coordinates;
    for (std::size_t d = 0; d < begin.size(); ++d) {
      coordinates.push_back(at_result[d] * whole(step[d]) + whole(begin[d]));
    }
    return x(coordinates);
  };
}

}  // namespace

std::optional<HalideElement> movement_element(const HalideNode& node) {
  const std::string& operation = node.call->operation();
  if (operation == "Reshape" || operation == "Flatten" || operation == "Squeeze" ||
      operation == "Unsqueeze") {
    return reshaped_element(node.operands[0], node.shape);
  }
  if (operation == "Transpose") return transposed_element(node);
  if (operation == "Slice") return slice_element(node);
  return std::nullopt;
}

}  // namespace braid
