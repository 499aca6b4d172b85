#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// T5 (Raffel et al. 2020), versions 1.0 and 1.1: an encoder and a decoder with cross attention,
/// both on samples of the same number of tokens (`n_positions` unless asked for otherwise).
/// Relative position biases are one table for all blocks of the encoder and one for the decoder's.
/// Layers: encoder embedding, encoder blocks, decoder embedding (with the encoder's final norm),
/// decoder blocks, each reading the encoder's output, and head. Throws Error naming the field.
Graph t5_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
