#pragma once

#include "braid/base/document.h"
#include "braid/frontend/decoder.h"
#include "braid/graph/model_shape.h"

namespace braid {

/// The shape of a decoder, with what its config.json says and no operator shows: rotary base and
/// scaling, epsilon, how the router scores. What the file leaves out is what Hugging Face's
/// transformers takes for its family, as the spec has it. Throws Error naming the field.
ModelShape decoder_shape(const Value& config, const DecoderSpec& spec);

}  // namespace braid
