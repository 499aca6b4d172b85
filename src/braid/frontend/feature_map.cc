#include "braid/frontend/feature_map.h"

namespace braid {
namespace {

FeatureMap add(GraphBuilder& builder, const std::string& name, const OperatorKind& kind,
               std::vector<TensorId> inputs, FeatureMap shape) {
  shape.tensor = builder.add(name, kind, std::move(inputs),
                             {shape.channels, shape.height, shape.width}, Split::replicated);
  return shape;
}

FeatureMap windowed(const FeatureMap& x, Window window) {
  return {-1, x.channels, window.outputs(x.height), window.outputs(x.width)};
}

}  // namespace

FeatureMap convolution_norm(GraphBuilder& builder, const std::string& name, const FeatureMap& x,
                            std::int64_t channels, Window window) {
  FeatureMap y = windowed(x, window);
  y.channels = channels;
  Convolution kind;
  kind.in_channels = x.channels;
  kind.out_channels = channels;
  kind.in_positions = x.positions();
  kind.out_positions = y.positions();
  kind.kernel_positions = window.kernel * window.kernel;
  const TensorId weight = builder.parameter(name + ".convolution.weight",
                                            {channels, x.channels, window.kernel, window.kernel});
  y = add(builder, name + ".convolution", kind, {x.tensor, weight}, y);
  const TensorId scale = builder.parameter(name + ".norm.weight", {channels});
  const TensorId shift = builder.parameter(name + ".norm.bias", {channels});
  return add(builder, name + ".norm", Normalization{y.elements(), y.positions(), false},
             {y.tensor, scale, shift}, y);
}

FeatureMap relu(GraphBuilder& builder, const std::string& name, const FeatureMap& x) {
  return add(builder, name, Elementwise{x.elements(), 1, Elementwise::Keeps::mask}, {x.tensor}, x);
}

FeatureMap sum(GraphBuilder& builder, const std::string& name, const FeatureMap& a,
               const FeatureMap& b) {
  return add(builder, name, Elementwise{a.elements(), 1, Elementwise::Keeps::nothing},
             {a.tensor, b.tensor}, a);
}

FeatureMap max_pool(GraphBuilder& builder, const std::string& name, const FeatureMap& x,
                    Window window) {
  return add(builder, name, Reduction{x.elements()}, {x.tensor}, windowed(x, window));
}

FeatureMap average_pool(GraphBuilder& builder, const std::string& name, const FeatureMap& x) {
  return add(builder, name, Reduction{x.elements()}, {x.tensor}, {-1, x.channels, 1, 1});
}

}  // namespace braid
