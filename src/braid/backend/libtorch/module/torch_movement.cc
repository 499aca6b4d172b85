#include <algorithm>
#include <numeric>

#include "braid/backend/libtorch/module/torch_operation.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// What only changes the shape: the output's is known.
TorchOperation reshape(const TorchNode& node) {
  node.need_constants();
  node.need_one_output();
  return torch_operation(
      [shape = node.out_form().shape](TorchOperands x) { return x[0].reshape(shape); });
}

TorchOperation expand(const TorchNode& node) {
  node.need_constants();
  return torch_operation(
      [shape = node.out_form().shape](TorchOperands x) { return x[0].expand(shape); });
}

TorchOperation tile(const TorchNode& node) {
  return torch_operation(
      [times = node.integers(std::size_t{1})](TorchOperands x) { return x[0].repeat(times); });
}

TorchOperation transpose(const TorchNode& node) {
  Shape order(node.rank_of(0));
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto* given = node.integers("perm")) order = *given;
  return torch_operation([order](TorchOperands x) { return x[0].permute(order); });
}

struct CutAxis {
  std::int64_t axis = 0, start = 0, end = 0, step = 1;
};

TorchOperation slice(const TorchNode& node) {
  node.need_constants();
  const auto starts = node.integers_of(1, "starts"), ends = node.integers_of(2, "ends");
  if (!starts || !ends) node.fail("has bounds that are computed");
  const auto axes = node.integers_of(3, "axes"), steps = node.integers_of(4, "steps");
  std::vector<CutAxis> cuts;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::int64_t axis = axes ? (*axes)[i] : static_cast<std::int64_t>(i);
    cuts.push_back({node.axis_of(0, axis), (*starts)[i], (*ends)[i], steps ? (*steps)[i] : 1});
    if (cuts.back().step < 1) node.fail("steps backwards");
  }
  return torch_operation([cuts](TorchOperands x) {
    at::Tensor y = x[0];
    for (const CutAxis& each : cuts) y = y.slice(each.axis, each.start, each.end, each.step);
    return y;
  });
}

TorchOperation concat(const TorchNode& node) {
  const std::int64_t axis = node.axis_of(0, node.need_integer("axis"));
  const auto all = [](TorchOperands x) { return std::vector<at::Tensor>(x.begin(), x.end()); };
  return torch_operation(
      [axis, all](TorchOperands x) { return at::cat(all(x), axis); },
      [axis, all](TorchOperands x, at::Tensor& out) { at::cat_out(out, all(x), axis); });
}

TorchOperation split(const TorchNode& node) {
  node.need_constants();
  const std::int64_t axis = node.axis_of(0, node.integer("axis", 0));
  Shape sizes;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (!node.wants(i)) node.fail("leaves out a part");
    sizes.push_back(node.out_form(i).shape[at(axis)]);
  }
  return {[axis, sizes](TorchOperands x) { return x[0].split_with_sizes(sizes, axis); }};
}

/// Whether a lookup that is fed may have indices that count from the end is not known; the library
/// fails at those.
TorchOperation gather(const TorchNode& node) {
  const std::int64_t axis = node.axis_of(0, node.integer("axis", 0));
  if (node.has(1)) {
    const std::vector<std::int64_t> indices = node.integers(std::size_t{1});
    if (std::any_of(indices.begin(), indices.end(), [](std::int64_t i) { return i < 0; })) {
      node.fail("counts from the end");
    }
  }
  if (axis == 0 && node.rank_of(0) == 2) {
    return torch_operation([](TorchOperands x) { return at::embedding(x[0], x[1]); });
  }
  return torch_operation([axis, shape = node.out_form().shape](TorchOperands x) {
    return x[0].index_select(axis, x[1].reshape({-1})).reshape(shape);
  });
}

TorchOperation pad(const TorchNode& node) {
  if (node.text("mode", "constant") != "constant") node.fail("pads with the tensor's own numbers");
  if (node.is_there(3)) node.fail("names axes");
  const auto pads = node.integers_of(1, "pads");
  if (!pads) node.fail("has padding that is computed");
  if (node.is_there(2) && !node.has(2)) node.fail("has a filler that is computed");
  const double filler = node.has(2) ? node.scalar(2) : node.real("value", 0);
  Shape from_last;
  const std::size_t rank = node.rank_of(0);
  for (std::size_t d = rank; d-- > 0;) {
    from_last.push_back((*pads)[d]);
    from_last.push_back((*pads)[d + rank]);
  }
  return torch_operation([from_last, filler](TorchOperands x) {
    return at::constant_pad_nd(x[0], from_last, filler);
  });
}

TorchOperation cast(const TorchNode& node) {
  return torch_operation(
      [type = torch_type(node.out_form().type)](TorchOperands x) { return x[0].to(type); });
}

TorchOperation identity(const TorchNode& node) {
  node.need_one_output();
  return torch_operation([](TorchOperands x) { return x[0]; });
}

TorchOperation einsum(const TorchNode& node) {
  return torch_operation([equation = node.text("equation", "")](TorchOperands x) {
    return at::einsum(equation, std::vector<at::Tensor>(x.begin(), x.end()));
  });
}

}  // namespace

TorchEntries torch_movement_entries() {
  return {{"Cast", {cast}},         {"Concat", {concat}},
          {"Einsum", {einsum}},     {"Expand", {expand}},
          {"Flatten", {reshape}},   {"Gather", {gather}},
          {"Identity", {identity}}, {"Pad", {pad}},
          {"Reshape", {reshape}},   {"Slice", {slice}},
          {"Split", {split}},       {"Squeeze", {reshape}},
          {"Tile", {tile}},         {"Transpose", {transpose}},
          {"Unsqueeze", {reshape}}};
}

}  // namespace braid
