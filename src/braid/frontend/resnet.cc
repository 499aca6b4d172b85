#include "braid/frontend/resnet.h"

#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/feature_map.h"

namespace braid {
namespace {

constexpr std::int64_t kMostChannels = std::int64_t{1} << 20;
constexpr std::int64_t kMostPixels = std::int64_t{1} << 16;  ///< Along one side.
constexpr std::int64_t kBottleneck = 4;  ///< A bottleneck block narrows its channels fourfold.

struct ResnetSpec {
  std::int64_t image = 224, image_channels = 3, stem = 64, labels = 1000;
  std::vector<std::int64_t> widths, depths;
  bool bottleneck = true;
  bool stride_in_first = false;  ///< In the 1×1 convolution of a bottleneck (ResNet v1).
  bool stride_in_first_stage = false;
};

std::int64_t labels_of(const Value& config) {
  const Value names = config["id2label"];
  if (!config["num_labels"].exists() && names.is_object() && names.size() > 0) {
    return static_cast<std::int64_t>(names.size());
  }
  return size_of(config, "num_labels");
}

ResnetSpec read_resnet(const Value& config) {
  ResnetSpec spec;
  spec.image = size_or(config, "image_size", 224, kMostPixels);
  spec.image_channels = size_or(config, "num_channels", 3, kMostChannels);
  spec.stem = size_of(config, "embedding_size", kMostChannels);
  spec.widths = sizes_of(config, "hidden_sizes", 1, kMostChannels);
  spec.depths = sizes_of(config, "depths", 1, kMostLayers);
  if (spec.depths.size() != spec.widths.size()) {
    config["depths"].fail(std::to_string(spec.depths.size()) + " depths for " +
                              std::to_string(spec.widths.size()) + " hidden sizes",
                          "give one depth for each of hidden_sizes");
  }
  std::int64_t blocks = 0;
  for (const std::int64_t depth : spec.depths) blocks += depth;
  check_layer_count(config, "depths", blocks);
  const std::string type = config["layer_type"].string_or("bottleneck");
  if (type != "bottleneck" && type != "basic") {
    config["layer_type"].fail("unknown layer type '" + type + "'", "use bottleneck or basic");
  }
  spec.bottleneck = type == "bottleneck";
  for (const Value& width : config["hidden_sizes"].elements()) {
    if (spec.bottleneck && width.as_int() % kBottleneck != 0) {
      width.fail(std::to_string(width.as_int()) + " channels in a bottleneck",
                 "use a multiple of " + std::to_string(kBottleneck));
    }
  }
  spec.stride_in_first = flag_or(config, "downsample_in_bottleneck", false);
  spec.stride_in_first_stage = flag_or(config, "downsample_in_first_stage", false);
  spec.labels = labels_of(config);
  return spec;
}

FeatureMap block(GraphBuilder& builder, const ResnetSpec& spec, const std::string& prefix,
                 const FeatureMap& x, std::int64_t channels, std::int64_t stride) {
  FeatureMap y = x;
  if (spec.bottleneck) {
    const std::int64_t narrow = channels / kBottleneck;
    const std::int64_t first = spec.stride_in_first ? stride : 1;
    y = convolution_norm(builder, prefix + "1", y, narrow, {1, first});
    y = relu(builder, prefix + "relu1", y);
    y = convolution_norm(builder, prefix + "2", y, narrow, {3, stride / first});
    y = relu(builder, prefix + "relu2", y);
    y = convolution_norm(builder, prefix + "3", y, channels, {1, 1});
  } else {
    y = convolution_norm(builder, prefix + "1", y, channels, {3, stride});
    y = relu(builder, prefix + "relu1", y);
    y = convolution_norm(builder, prefix + "2", y, channels, {3, 1});
  }
  FeatureMap shortcut = x;
  if (x.channels != channels || stride != 1) {
    shortcut = convolution_norm(builder, prefix + "shortcut", x, channels, {1, stride});
  }
  y = sum(builder, prefix + "add", y, shortcut);
  return relu(builder, prefix + "relu", y);
}

}  // namespace

Graph resnet_from_config(const Value& config, const std::string& name,
                         const ModelOptions& options) {
  refuse_seq_len(name, options);
  const ResnetSpec spec = read_resnet(config);
  GraphBuilder builder(name, 0);

  builder.begin_layer("stem");
  FeatureMap x = {-1, spec.image_channels, spec.image, spec.image};
  x.tensor = builder.input("image", {x.channels, x.height, x.width}, Dtype::bf16);
  x = convolution_norm(builder, "stem", x, spec.stem, {7, 2});
  x = relu(builder, "stem.relu", x);
  x = max_pool(builder, "stem.pool", x, {3, 2});

  for (std::size_t stage = 0; stage < spec.widths.size(); ++stage) {
    const bool halves = stage > 0 || spec.stride_in_first_stage;
    for (std::int64_t b = 0; b < spec.depths[stage]; ++b) {
      const std::string layer = "stage" + std::to_string(stage) + ".block" + std::to_string(b);
      builder.begin_layer(layer);
      x = block(builder, spec, layer + ".", x, spec.widths[stage], halves && b == 0 ? 2 : 1);
    }
  }

  builder.begin_layer("head");
  x = average_pool(builder, "head.pool", x);
  const TensorId logits = builder.linear("head.classifier", x.tensor, {1, x.channels, spec.labels},
                                         true, Split::replicated);
  return builder.finish(
      {builder.add("loss", Loss{1, spec.labels}, {logits}, {1}, Split::replicated)});
}

}  // namespace braid
