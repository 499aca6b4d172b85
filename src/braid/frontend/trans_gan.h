#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// The generator of TransGAN (Jiang et al. 2021), from a config with `model_type` "transgan": a
/// linear layer turns `latent_size` numbers into an image of `bottom_width` × `bottom_width`
/// tokens; stage s has `depths[s]` transformer blocks (possibly none) of `hidden_sizes[s]` and
/// `num_attention_heads`, whose attention sees windows of `window_sizes[s]` × `window_sizes[s]`
/// tokens with relative positions, and a feed-forward network `mlp_ratio` (4) times as wide.
/// Between stages the image doubles in each direction: tokens are repeated when the next stage is
/// as wide, or shuffled into pixels when it is a quarter as wide. A 1×1 convolution gives
/// `num_channels` (3). The loss is the mean of the image, standing in for a discriminator. Layers:
/// the latent layer, each block, each doubling, the image. Throws Error naming the field.
Graph trans_gan_from_config(const Value& config, const std::string& name,
                            const ModelOptions& options);

}  // namespace braid
