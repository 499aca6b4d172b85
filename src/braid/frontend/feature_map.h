#pragma once

#include <cstdint>
#include <string>

#include "braid/frontend/graph_builder.h"

namespace braid {

/// An image's features inside a convolutional network, for one sample.
struct FeatureMap {
  TensorId tensor = -1;
  std::int64_t channels = 1, height = 1, width = 1;

  std::int64_t positions() const { return height * width; }
  std::int64_t elements() const { return channels * positions(); }
};

/// A square sliding window over a feature map, padded by (kernel - 1) / 2 on each side.
struct Window {
  std::int64_t kernel = 1, stride = 1;

  /// Outputs along an axis of `size` positions: ⌊(size + 2·padding - kernel) / stride⌋ + 1.
  std::int64_t outputs(std::int64_t size) const {
    const std::int64_t padding = (kernel - 1) / 2;
    return (size + 2 * padding - kernel) / stride + 1;
  }
};

/// Convolution without bias into `channels` channels, then batch normalisation.
FeatureMap convolution_norm(GraphBuilder& builder, const std::string& name, const FeatureMap& x,
                            std::int64_t channels, Window window);

FeatureMap relu(GraphBuilder& builder, const std::string& name, const FeatureMap& x);

/// Sum of two maps of one shape.
FeatureMap sum(GraphBuilder& builder, const std::string& name, const FeatureMap& a,
               const FeatureMap& b);

FeatureMap max_pool(GraphBuilder& builder, const std::string& name, const FeatureMap& x,
                    Window window);

/// Mean over all positions.
FeatureMap average_pool(GraphBuilder& builder, const std::string& name, const FeatureMap& x);

}  // namespace braid
