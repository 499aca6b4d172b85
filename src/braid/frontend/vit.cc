#include "braid/frontend/vit.h"

#include "braid/frontend/config_fields.h"
#include "braid/frontend/encoder_block.h"
#include "braid/frontend/transformer_block.h"

namespace braid {
namespace {

constexpr std::int64_t kMostImageSide = std::int64_t{1} << 14;  ///< Along one side.

struct VitSpec {
  std::int64_t layers = 1, image = 224, patch = 16, channels = 3, classes = 2;
  BlockSpec block;
};

std::int64_t classes_of(const Value& config) {
  const Value names = config["id2label"];
  if (has(config, "num_labels") || !names.exists() || names.is_null()) {
    return size_or(config, "num_labels", 2);
  }
  const auto count = static_cast<std::int64_t>(names.members().size());
  if (count < 1 || count > kMostWidth) names.fail("names no class", "give num_labels");
  return count;
}

VitSpec read_vit(const Value& config) {
  VitSpec spec;
  spec.layers = size_of(config, "num_hidden_layers", kMostLayers);
  spec.image = size_or(config, "image_size", 224, kMostImageSide);
  spec.patch = size_or(config, "patch_size", 16, spec.image);
  check_divides(config, "patch_size", spec.patch, spec.image, "image_size");
  spec.channels = size_or(config, "num_channels", 3, kMostImageSide);
  spec.classes = classes_of(config);
  spec.block = read_encoder_block(config, NormPlacement::before, 0);
  return spec;
}

/// Patches of the image, the class token before them, and positions.
TensorId embed(GraphBuilder& builder, const VitSpec& spec, std::int64_t tokens) {
  const std::int64_t h = spec.block.hidden;
  const TensorId image =
      builder.input("image", {spec.channels, spec.image, spec.image}, Dtype::bf16);
  Convolution kind;
  kind.in_channels = spec.channels;
  kind.out_channels = h;
  kind.in_positions = spec.image * spec.image;
  kind.out_positions = tokens - 1;
  kind.kernel_positions = spec.patch * spec.patch;
  kind.bias = true;
  const TensorId weight =
      builder.parameter("patches.weight", {h, spec.channels, spec.patch, spec.patch});
  const TensorId bias = builder.parameter("patches.bias", {h});
  const TensorId patches =
      builder.add("patches", kind, {image, weight, bias}, {tokens - 1, h}, Split::sequence);
  const TensorId token = builder.parameter("class_token", {1, h});
  TensorId x = builder.add("prepend_class_token", DataMovement{}, {patches, token}, {tokens, h},
                           Split::sequence);
  x = builder.add_positions("add_positions", x, tokens, tokens, h);
  if (spec.block.dropout) x = builder.dropout("embedding.dropout", x, tokens, h);
  return x;
}

}  // namespace

Graph vit_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  const VitSpec spec = read_vit(config);
  const std::int64_t side = spec.image / spec.patch;
  const std::int64_t tokens = side * side + 1;
  if (options.seq_len != 0 && options.seq_len != tokens) {
    throw Error(Where{"", 0, "--seq-len"},
                name + " reads images of " + std::to_string(tokens - 1) +
                    " patches: image_size and patch_size give its sequence",
                "leave it out");
  }
  const std::int64_t h = spec.block.hidden;
  GraphBuilder builder(name, tokens);
  builder.begin_layer("embedding");
  TensorId x = embed(builder, spec, tokens);
  for (std::int64_t l = 0; l < spec.layers; ++l) {
    const std::string block = "block" + std::to_string(l);
    builder.begin_layer(block);
    x = transformer_block(builder, spec.block, block + ".", x, tokens);
  }
  builder.begin_layer("head");
  x = builder.norm("final_norm", x, tokens, h, false);
  x = builder.add("class_token", DataMovement{}, {x}, {1, h}, Split::replicated);
  x = builder.linear("classifier", x, {1, h, spec.classes}, true, Split::replicated);
  x = builder.add("loss", Loss{1, spec.classes}, {x}, {1}, Split::replicated);
  return builder.finish({x});
}

}  // namespace braid
