#include "braid/profile/operator_splits.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

const Tensor& tensor_of(const Graph& graph, TensorId id) {
  return graph.tensors[static_cast<std::size_t>(id)];
}

std::vector<TensorId> activations_of(const Graph& graph, const Operator& op) {
  std::vector<TensorId> read;
  for (const TensorId input : op.inputs) {
    if (!tensor_of(graph, input).is_parameter) read.push_back(input);
  }
  return read;
}

int last_axis(const Tensor& tensor) { return static_cast<int>(tensor.dims.size()) - 1; }

std::int64_t dim_of(const Tensor& tensor, int axis) {
  return tensor.dims[static_cast<std::size_t>(axis)];
}

/// Whether both have as many dimensions before `axis`, each of one size.
bool same_before(const Tensor& a, const Tensor& b, int axis) {
  const auto count = static_cast<std::ptrdiff_t>(axis);
  return last_axis(a) >= axis && last_axis(b) >= axis &&
         std::equal(a.dims.begin(), a.dims.begin() + count, b.dims.begin());
}

FeatureAxis last_of(const Tensor& tensor) {
  if (tensor.dims.empty()) return {};
  return {last_axis(tensor), tensor.dims.back()};
}

/// Channels come first, or second behind the samples; positions follow.
FeatureAxis channels_of(const Tensor& tensor, std::int64_t channels) {
  const int last = last_axis(tensor);
  if (last >= 3 && dim_of(tensor, 1) == channels) return {1, channels};
  if (last == 2 && dim_of(tensor, 0) == channels) return {0, channels};
  if (last >= 1 && dim_of(tensor, 1) == channels) return {1, channels};
  return {};
}

/// A view has the same elements in the same order.
FeatureAxis viewed(const Tensor& from, FeatureAxis features, const Tensor& to) {
  double before = 1;
  for (int i = 0; i < features.axis; ++i) before *= static_cast<double>(dim_of(from, i));
  double passed = 1;
  for (int i = 0; i <= last_axis(to); ++i) {
    // Of leading dimensions of size 1 the last one before the features counts.
    if (passed == before && dim_of(to, i) > 1) {
      if (dim_of(to, i) % features.count == 0) return {i, features.count};
      if (features.count % dim_of(to, i) == 0) return {i, dim_of(to, i)};
      return {};
    }
    passed *= static_cast<double>(dim_of(to, i));
  }
  return {};
}

class Features {
 public:
  explicit Features(const Graph& graph) : graph_(graph), axes_(graph.tensors.size()) {
    for (const Operator& op : graph.operators) {
      for (const TensorId output : op.outputs) {
        axes_[static_cast<std::size_t>(output)] =
            std::visit([&](const auto& kind) { return written(op, kind, output); }, op.kind);
      }
    }
  }

  std::vector<FeatureAxis> take() { return std::move(axes_); }

 private:
  FeatureAxis axis_of(TensorId id) const { return axes_[static_cast<std::size_t>(id)]; }

  FeatureAxis written(const Operator& /*op*/, const Convolution& kind, TensorId output) const {
    return channels_of(tensor_of(graph_, output), kind.out_channels);
  }
  FeatureAxis written(const Operator& op, const DataMovement& kind, TensorId output) const {
    const std::vector<TensorId> read = activations_of(graph_, op);
    if (read.empty() || axis_of(read[0]).axis < 0) return {};
    const Tensor& to = tensor_of(graph_, output);
    const Tensor& from = tensor_of(graph_, read[0]);
    if (kind.view) return viewed(from, axis_of(read[0]), to);
    // One tensor of the same size may have been transposed.
    if (read.size() == 1 && elements_of(from) == elements_of(to)) return {};
    return carried(read, to);
  }
  FeatureAxis written(const Operator& op, const Elementwise& /*kind*/, TensorId output) const {
    const std::vector<TensorId> read = activations_of(graph_, op);
    const Tensor& to = tensor_of(graph_, output);
    const auto largest = std::max_element(read.begin(), read.end(), [&](TensorId a, TensorId b) {
      return elements_of(tensor_of(graph_, a)) < elements_of(tensor_of(graph_, b));
    });
    if (largest == read.end()) return {};
    const FeatureAxis features = axis_of(*largest);
    const Tensor& from = tensor_of(graph_, *largest);
    if (features.axis < 0 || to.dims.empty()) return {};
    if (same_before(from, to, features.axis)) {
      // Gates halve the features.
      const std::int64_t width = dim_of(to, features.axis);
      return {features.axis, std::gcd(features.count, width)};
    }
    const bool broadcast = features.axis == last_axis(from) && to.dims.back() == from.dims.back();
    return broadcast ? FeatureAxis{last_axis(to), features.count} : FeatureAxis{};
  }
  FeatureAxis written(const Operator& op, const Normalization& /*kind*/, TensorId output) const {
    return carried(activations_of(graph_, op), tensor_of(graph_, output));
  }
  FeatureAxis written(const Operator& op, const Softmax& /*kind*/, TensorId output) const {
    return carried(activations_of(graph_, op), tensor_of(graph_, output));
  }
  FeatureAxis written(const Operator& op, const Reduction& /*kind*/, TensorId output) const {
    return carried(activations_of(graph_, op), tensor_of(graph_, output));
  }
  template <typename Kind>
  FeatureAxis written(const Operator& /*op*/, const Kind& /*kind*/, TensorId output) const {
    return last_of(tensor_of(graph_, output));
  }

  /// All of `read` have features along one axis, along which the output is as long as one of them
  /// or all together.
  FeatureAxis carried(const std::vector<TensorId>& read, const Tensor& to) const {
    FeatureAxis features;
    std::int64_t sum = 0;
    bool equal = true;
    for (const TensorId id : read) {
      const FeatureAxis each = axis_of(id);
      const Tensor& from = tensor_of(graph_, id);
      if (each.axis < 0 || !same_before(from, to, each.axis)) return {};
      if (features.axis >= 0 && features.axis != each.axis) return {};
      features = {each.axis, std::gcd(features.count, each.count)};
      sum += dim_of(from, each.axis);
      equal = equal && dim_of(from, each.axis) == dim_of(to, each.axis);
    }
    if (features.axis < 0 || (!equal && sum != dim_of(to, features.axis))) return {};
    return features;
  }

  const Graph& graph_;
  std::vector<FeatureAxis> axes_;
};

/// Ways of one operator, by its kind.
class Ways {
 public:
  Ways(const Graph& graph, const Operator& op, LayerId layer,
       const std::vector<FeatureAxis>& features, int ranks)
      : graph_(graph), op_(op), layer_(layer), features_(features), ranks_(ranks) {}

  std::vector<Split> of(const MatMul& kind) const {
    if (!kind.weight) return {};
    std::vector<Split> ways;
    if (kind.n % ranks_ == 0) ways.push_back(Split::column);
    if (kind.k % ranks_ == 0 && reads_features([&](const Tensor& tensor, FeatureAxis axis) {
          return axis.axis == last_axis(tensor) && tensor.dims.back() == kind.k;
        })) {
      ways.push_back(Split::row);
    }
    if (feeds_loss() && kind.n % ranks_ == 0) ways.push_back(Split::vocab);
    return ways;
  }
  std::vector<Split> of(const Convolution& kind) const {
    const auto channels = [&](const Tensor& tensor, FeatureAxis axis) {
      return dim_of(tensor, axis.axis) == kind.in_channels;
    };
    const bool in = kind.in_channels % ranks_ == 0, out = kind.out_channels % ranks_ == 0;
    std::vector<Split> ways;
    if (kind.groups > 1) {
      if (in && out && kind.groups % ranks_ == 0 && divides(output()) && reads_features(channels)) {
        ways.push_back(Split::features);
      }
      return ways;
    }
    if (out && divides(output())) ways.push_back(Split::column);
    if (in && reads_features(channels)) ways.push_back(Split::row);
    return ways;
  }
  std::vector<Split> of(const Attention& kind) const {
    const auto last = [](const Tensor& tensor, FeatureAxis axis) {
      return axis.axis == last_axis(tensor);
    };
    const bool divides_heads = kind.heads % ranks_ == 0 && kind.kv_heads % ranks_ == 0;
    if (divides_heads && reads_features(last)) return {Split::heads};
    return {};
  }
  std::vector<Split> of(const Recurrent& kind) const {
    if (kind.n % ranks_ == 0 && divides(output())) return {Split::column};
    return {};
  }
  std::vector<Split> of(const Embedding& kind) const {
    std::vector<Split> ways;
    if (kind.width % ranks_ == 0 && divides(output())) ways.push_back(Split::column);
    if (kind.rows % ranks_ == 0) ways.push_back(Split::vocab);
    return ways;
  }
  std::vector<Split> of(const Loss& kind) const {
    const bool of_gemm = !op_.inputs.empty() && producer_of(op_.inputs[0]) != nullptr &&
                         std::holds_alternative<MatMul>(producer_of(op_.inputs[0])->kind);
    if (of_gemm && kind.width % ranks_ == 0) return {Split::vocab};
    return {};
  }
  std::vector<Split> of(const Normalization& kind) const {
    // Statistics of each channel apart, over its positions.
    const FeatureAxis axis = features_[static_cast<std::size_t>(output())];
    if (!divides(output())) return {};
    const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(output())];
    double positions = 1;
    for (int i = axis.axis + 1; i <= last_axis(tensor); ++i) {
      positions *= static_cast<double>(dim_of(tensor, i));
    }
    if (axis.axis == last_axis(tensor) || positions != static_cast<double>(kind.width)) return {};
    return pointwise();
  }
  std::vector<Split> of(const Elementwise& /*kind*/) const {
    if (!divides(output())) return {};
    const Tensor& to = tensor_of(graph_, output());
    const std::int64_t width = dim_of(to, features_[static_cast<std::size_t>(output())].axis);
    const bool same_features = reads_features(
        [&](const Tensor& from, FeatureAxis axis) { return dim_of(from, axis.axis) % width == 0; });
    return same_features ? pointwise() : std::vector<Split>{};
  }
  std::vector<Split> of(const Reduction& /*kind*/) const { return pointwise(); }
  std::vector<Split> of(const DataMovement& /*kind*/) const { return pointwise(); }
  template <typename Kind>
  std::vector<Split> of(const Kind& /*kind*/) const {
    return {};
  }

 private:
  TensorId output() const { return op_.outputs.front(); }
  bool divides(TensorId id) const {
    const FeatureAxis features = features_[static_cast<std::size_t>(id)];
    return features.axis >= 0 && features.count % ranks_ == 0;
  }
  const Operator* producer_of(TensorId id) const {
    const OperatorId producer = tensor_of(graph_, id).producer;
    return producer < 0 ? nullptr : &graph_.operators[static_cast<std::size_t>(producer)];
  }

  /// Whether a rank's share of every activation can be its share of features. What comes from
  /// outside of the layer is there whole: any part can be taken of it.
  template <typename Fits>
  bool reads_features(const Fits& fits) const {
    return std::all_of(op_.inputs.begin(), op_.inputs.end(), [&](TensorId id) {
      const Operator* producer = producer_of(id);
      if (producer == nullptr || producer->layer != layer_) return true;
      return divides(id) && fits(tensor_of(graph_, id), features_[static_cast<std::size_t>(id)]);
    });
  }
  std::vector<Split> pointwise() const {
    if (op_.outputs.size() != 1 || !divides(output())) return {};
    if (!reads_features([](const Tensor&, FeatureAxis) { return true; })) return {};
    return {Split::features};
  }
  bool feeds_loss() const {
    const Layer& layer = graph_.layers[static_cast<std::size_t>(layer_)];
    bool found = false;
    for (OperatorId id = layer.first; id < layer.last; ++id) {
      const Operator& reader = graph_.operators[static_cast<std::size_t>(id)];
      if (std::find(reader.inputs.begin(), reader.inputs.end(), output()) == reader.inputs.end()) {
        continue;
      }
      if (!std::holds_alternative<Loss>(reader.kind)) return false;
      found = true;
    }
    return found;
  }

  const Graph& graph_;
  const Operator& op_;
  LayerId layer_;
  const std::vector<FeatureAxis>& features_;
  std::int64_t ranks_;
};

/// Whether ranks divide what the graph's own split divides.
bool divides_evenly(const Graph& graph, const Operator& op, int ranks) {
  switch (op.split) {
    case Split::replicated:
    case Split::sequence:
    case Split::vocab:
      return true;
    case Split::column:
    case Split::row:
      if (const auto* gemm = std::get_if<MatMul>(&op.kind)) {
        return (op.split == Split::column ? gemm->n : gemm->k) % ranks == 0;
      }
      return false;
    case Split::heads:
      if (const auto* attention = std::get_if<Attention>(&op.kind)) {
        return attention->heads % ranks == 0;
      }
      [[fallthrough]];
    case Split::features: {
      if (op.outputs.empty()) return false;
      const Tensor& output = tensor_of(graph, op.outputs.front());
      return !output.dims.empty() && output.dims.back() % ranks == 0;
    }
    case Split::expert:
      if (const auto* experts = std::get_if<MoeExperts>(&op.kind)) {
        return experts->inner % ranks == 0;
      }
      return false;
  }
  return false;
}

}  // namespace

std::vector<FeatureAxis> feature_axes(const Graph& graph) { return Features(graph).take(); }

std::vector<Split> operator_splits(const Graph& graph, const Operator& op, LayerId layer,
                                   const std::vector<FeatureAxis>& features, int ranks,
                                   bool fixed) {
  const bool own = divides_evenly(graph, op, ranks);
  if (op.split == Split::expert || fixed) {
    return own ? std::vector<Split>{op.split} : std::vector<Split>{};
  }
  std::vector<Split> ways = {op.split == Split::sequence ? Split::sequence : Split::replicated};
  if (own && op.split != ways[0]) ways.push_back(op.split);
  if (op.outputs.empty()) return ways;
  const Ways known(graph, op, layer, features, ranks);
  for (const Split way : std::visit([&](const auto& kind) { return known.of(kind); }, op.kind)) {
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  return ways;
}

}  // namespace braid
