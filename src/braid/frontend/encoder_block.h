#pragma once

#include "braid/base/document.h"
#include "braid/frontend/transformer_block.h"

namespace braid {

/// The block of BERT and of what took its config over (ViT): full attention and a plain
/// feed-forward network, both with biases, and layer norms. `dropout` is the rate of the fields
/// that are left out. Throws Error naming the field.
BlockSpec read_encoder_block(const Value& config, NormPlacement norms, double dropout);

}  // namespace braid
