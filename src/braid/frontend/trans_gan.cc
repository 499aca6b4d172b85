#include "braid/frontend/trans_gan.h"

#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/transformer_block.h"

namespace braid {
namespace {

constexpr std::size_t kMostStages = 10;
constexpr std::int64_t kMostSide = 8192;  ///< Tokens along one side of the image.
constexpr std::int64_t kMostWidth = std::int64_t{1} << 18;
constexpr std::int64_t kShuffle = 4;  ///< Features of a token that become four pixels.

struct Stage {
  std::int64_t depth = 0, hidden = 1, side = 1, window = 1;

  std::int64_t tokens() const { return side * side; }
};

struct TransGanSpec {
  std::int64_t latent = 1, heads = 1, mlp_ratio = 4, channels = 3;
  std::vector<Stage> stages;
};

std::vector<Stage> read_stages(const Value& config, std::int64_t heads) {
  const std::vector<std::int64_t> widths = sizes_of(config, "hidden_sizes", 1, kMostWidth);
  const std::vector<std::int64_t> windows = sizes_of(config, "window_sizes", 1, kMostSide);
  const std::vector<Value> depths = config["depths"].elements();
  if (widths.size() > kMostStages) {
    config["hidden_sizes"].fail("has " + std::to_string(widths.size()) + " stages",
                                "give at most " + std::to_string(kMostStages));
  }
  const auto expect_as_many = [&](const char* key, std::size_t count) {
    if (count == widths.size()) return;
    config[key].fail(
        std::to_string(count) + " for " + std::to_string(widths.size()) + " hidden sizes",
        "give one for each of hidden_sizes");
  };
  expect_as_many("depths", depths.size());
  expect_as_many("window_sizes", windows.size());
  std::vector<Stage> stages;
  std::int64_t side = size_of(config, "bottom_width", kMostSide);
  for (std::size_t s = 0; s < widths.size(); ++s, side *= 2) {
    if (side > kMostSide) {
      config["bottom_width"].fail("grows to an image " + std::to_string(side) + " wide",
                                  "use fewer stages or a smaller one");
    }
    if (s > 0 && widths[s] != widths[s - 1] && widths[s] * kShuffle != widths[s - 1]) {
      config["hidden_sizes"][s].fail(
          std::to_string(widths[s]) + " after " + std::to_string(widths[s - 1]),
          "keep the width (tokens are repeated) or quarter it (they become pixels)");
    }
    const std::int64_t depth = depths[s].as_int_in(0, kMostLayers / 10);
    if (depth > 0) {
      check_divides(config, "num_attention_heads", heads, widths[s], "the hidden size");
      if (side % windows[s] != 0) {
        config["window_sizes"][s].fail(std::to_string(windows[s]) +
                                       " does not divide the image's side of " +
                                       std::to_string(side));
      }
    }
    stages.push_back({depth, widths[s], side, windows[s]});
  }
  return stages;
}

TransGanSpec read_trans_gan(const Value& config) {
  TransGanSpec spec;
  spec.latent = size_of(config, "latent_size", kMostWidth);
  spec.heads = size_of(config, "num_attention_heads", kMostWidth);
  spec.mlp_ratio = size_or(config, "mlp_ratio", 4, 64);
  spec.channels = size_or(config, "num_channels", 3, kMostWidth);
  spec.stages = read_stages(config, spec.heads);
  return spec;
}

/// Scales each token to unit length; without weights.
TensorId pixel_norm(GraphBuilder& builder, const std::string& name, const Stage& stage,
                    TensorId x) {
  return builder.add(name, Normalization{stage.tokens() * stage.hidden, stage.hidden, true}, {x},
                     {stage.tokens(), stage.hidden}, Split::sequence);
}

TensorId window_attention(GraphBuilder& builder, const TransGanSpec& spec, const Stage& stage,
                          const std::string& prefix, TensorId x) {
  const std::int64_t tokens = stage.tokens();
  const std::int64_t h = stage.hidden;
  x = builder.add(prefix + "noise", Elementwise{tokens * h, 2, Elementwise::Keeps::nothing},
                  {x, builder.parameter(prefix + "noise.strength", {1})}, {tokens, h},
                  Split::sequence);
  const TensorId qkv = builder.linear(prefix + "qkv", x, {tokens, h, 3 * h}, true, Split::column);
  const std::int64_t offsets = 2 * stage.window - 1;
  const TensorId positions =
      builder.parameter(prefix + "relative_positions", {offsets * offsets, spec.heads});
  Attention core;
  core.q_len = core.kv_len = stage.window * stage.window;
  core.samples = tokens / core.q_len;
  core.heads = core.kv_heads = spec.heads;
  core.qk_dim = core.v_dim = h / spec.heads;
  const TensorId context =
      builder.add(prefix + "core", core, {qkv, positions}, {tokens, h}, Split::heads);
  return builder.linear(prefix + "proj", context, {tokens, h, h}, true, Split::row);
}

TensorId block(GraphBuilder& builder, const TransGanSpec& spec, const Stage& stage,
               const std::string& prefix, TensorId x) {
  BlockSpec mlp;
  mlp.hidden = stage.hidden;
  mlp.mlp = {spec.mlp_ratio * stage.hidden, false, Activation::gelu, true};
  TensorId y = pixel_norm(builder, prefix + "norm1", stage, x);
  y = window_attention(builder, spec, stage, prefix + "attention.", y);
  x = builder.residual(prefix + "add1", x, y, stage.tokens(), stage.hidden);
  y = pixel_norm(builder, prefix + "norm2", stage, x);
  y = feed_forward(builder, mlp, prefix + "mlp.", y, stage.tokens(), mlp.mlp.inner);
  return builder.residual(prefix + "add2", x, y, stage.tokens(), stage.hidden);
}

TensorId image_mean(GraphBuilder& builder, const TransGanSpec& spec, const Stage& last,
                    TensorId x) {
  Convolution kind;
  kind.in_channels = last.hidden;
  kind.out_channels = spec.channels;
  kind.in_positions = kind.out_positions = last.tokens();
  kind.bias = true;
  const TensorId weight = builder.parameter("image.weight", {spec.channels, last.hidden, 1, 1});
  const TensorId bias = builder.parameter("image.bias", {spec.channels});
  const TensorId image = builder.add("image", kind, {x, weight, bias},
                                     {spec.channels, last.side, last.side}, Split::replicated);
  return builder.add("mean", Reduction{spec.channels * last.tokens()}, {image}, {1},
                     Split::replicated);
}

}  // namespace

Graph trans_gan_from_config(const Value& config, const std::string& name,
                            const ModelOptions& options) {
  refuse_seq_len(name, options);
  const TransGanSpec spec = read_trans_gan(config);
  GraphBuilder builder(name, 0);
  builder.begin_layer("latent");
  const Stage& first = spec.stages.front();
  TensorId x = builder.input("noise", {1, spec.latent}, Dtype::bf16);
  x = builder.linear("latent", x, {1, spec.latent, first.tokens() * first.hidden}, true,
                     Split::replicated);
  x = builder.add("tokens", DataMovement{true}, {x}, {first.tokens(), first.hidden},
                  Split::replicated);
  for (std::size_t s = 0; s < spec.stages.size(); ++s) {
    const Stage& stage = spec.stages[s];
    const std::string prefix = "stage" + std::to_string(s) + ".";
    if (s > 0) {
      builder.begin_layer(prefix + "doubling");
      x = builder.add(prefix + "doubling", DataMovement{}, {x}, {stage.tokens(), stage.hidden},
                      Split::sequence);
    }
    x = builder.add_positions(prefix + "positions", x, stage.tokens(), stage.tokens(),
                              stage.hidden);
    for (std::int64_t b = 0; b < stage.depth; ++b) {
      const std::string layer = prefix + "block" + std::to_string(b);
      builder.begin_layer(layer);
      x = block(builder, spec, stage, layer + ".", x);
    }
  }
  builder.begin_layer("image");
  return builder.finish({image_mean(builder, spec, spec.stages.back(), x)});
}

}  // namespace braid
