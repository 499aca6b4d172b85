#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/frontend/onnx_node.h"
#include "braid/frontend/onnx_rules.h"

namespace braid {
namespace {

using Dims = OnnxNodeView::Dims;

/// Elements from dimension `first` to the last.
std::int64_t elements_from(const OnnxNodeView& node, std::size_t first) {
  const Dims& dims = node.dims(0);
  return node.product(std::span(dims).subspan(std::min(first, dims.size())));
}

/// Softmax takes all dimensions from `axis` as one row before version 13, and only that one since.
std::optional<OperatorKind> softmax(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  node.need_rank(0, 1, 1 << 10);
  const bool flattens = node.opset() < 13;
  const std::size_t rank = node.rank(0);
  const std::int64_t given = node.integer(
      "axis", flattens ? std::min<std::int64_t>(1, static_cast<std::int64_t>(rank) - 1) : -1);
  const std::size_t axis = node.axis(given, rank);
  node.set(0, node.type(0), node.dims(0));
  return Softmax{node.elements(0), flattens ? elements_from(node, axis) : node.dims(0)[axis]};
}

/// The channels of dimension 1, each normalised with stored or its own statistics.
std::optional<OperatorKind> batch_normalization(OnnxNodeView& node) {
  node.need_inputs(5, 5);
  node.need_rank(0, 1, 1 << 10);
  node.not_trained(3);
  node.not_trained(4);
  const Dims& in = node.dims(0);
  const std::int64_t channels = in.size() > 1 ? in[1] : 1;
  node.set(0, node.type(0), in);
  for (std::size_t statistic = 1; statistic < 5; ++statistic) {
    node.set(statistic, node.type(1), node.dims(1));
  }
  if (channels == 0) node.fail("has no channels");
  return Normalization{node.elements(0), node.elements(0) / channels, false};
}

std::optional<OperatorKind> instance_normalization(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  node.need_rank(0, 3, 1 << 10);
  node.set(0, node.type(0), node.dims(0));
  return Normalization{node.elements(0), elements_from(node, 2), false};
}

std::optional<OperatorKind> group_normalization(OnnxNodeView& node) {
  node.need_inputs(3, 3);
  node.need_rank(0, 3, 1 << 10);
  const std::int64_t groups = node.need_integer("num_groups");
  if (groups < 1 || node.dims(0)[1] % groups != 0) {
    node.fail(fmt::format("{} groups do not divide {} channels", groups, node.dims(0)[1]));
  }
  node.set(0, node.type(0), node.dims(0));
  return Normalization{node.elements(0), elements_from(node, 1) / groups, false};
}

std::optional<OperatorKind> layer_normalization(OnnxNodeView& node, bool rms) {
  node.need_inputs(1, 3);
  const std::size_t rank = node.rank(0);
  const std::size_t axis = node.axis(node.integer("axis", -1), rank);
  Dims statistics = node.dims(0);
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  node.set(0, node.type(0), node.dims(0));
  node.set(1, OnnxType::f32, statistics);
  node.set(2, OnnxType::f32, statistics);
  return Normalization{node.elements(0), elements_from(node, axis), rms};
}

/// The contributed sum of two operands and its normalisation; output 3 is the sum.
std::optional<OperatorKind> skip_layer_normalization(OnnxNodeView& node, bool rms) {
  node.need_inputs(3, 5);
  node.need_rank(0, 2, 3);
  const Dims& in = node.dims(0);
  if (node.broadcast(in, node.dims(1)) != in) {
    node.fail(fmt::format("{} cannot be added to {}", text_of(node.dims(1)), text_of(in)));
  }
  Dims statistics = in;
  statistics.back() = 1;
  node.set(0, node.type(0), in);
  node.set(1, OnnxType::f32, statistics);
  node.set(2, OnnxType::f32, statistics);
  node.set(3, node.type(0), in);
  return Normalization{node.elements(0), in.back(), rms};
}

/// Over `size` neighbouring channels.
std::optional<OperatorKind> local_response(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  const std::int64_t size = node.need_integer("size");
  if (size < 1) node.fail(fmt::format("its size is {}", size));
  node.set(0, node.type(0), node.dims(0));
  return Normalization{node.elements(0), size, true};
}

std::optional<OperatorKind> mean_variance(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  Dims axes{0, 2, 3};
  if (const auto* given = node.integers("axes")) axes = *given;
  std::int64_t width = 1;
  for (const std::int64_t each : axes) {
    width = node.times(width, node.dims(0)[node.axis(each, node.rank(0))]);
  }
  node.set(0, node.type(0), node.dims(0));
  return Normalization{node.elements(0), width, false};
}

std::optional<OperatorKind> lp_normalization(OnnxNodeView& node) {
  node.need_inputs(1, 1);
  const std::size_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  node.set(0, node.type(0), node.dims(0));
  return Normalization{node.elements(0), node.dims(0)[axis], true};
}

constexpr std::array<OnnxRuleEntry, 14> normalization_rules{{
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
    {"Hardmax", softmax},
    {"InstanceNormalization", instance_normalization},
    {"LRN", local_response},
    {"LayerNormalization", [](OnnxNodeView& node) { return layer_normalization(node, false); }},
    {"LogSoftmax", softmax},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance},
    {"RMSNormalization", [](OnnxNodeView& node) { return layer_normalization(node, true); }},
    {"SimplifiedLayerNormalization",
     [](OnnxNodeView& node) { return layer_normalization(node, true); }},
    {"SkipLayerNormalization",
     [](OnnxNodeView& node) { return skip_layer_normalization(node, false); }},
    {"SkipSimplifiedLayerNormalization",
     [](OnnxNodeView& node) { return skip_layer_normalization(node, true); }},
    {"Softmax", softmax},
}};

}  // namespace

std::span<const OnnxRuleEntry> onnx_normalization_rules() { return normalization_rules; }

}  // namespace braid
