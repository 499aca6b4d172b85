#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Google's neural machine translation (Wu et al. 2016), from a config with `model_type` "gnmt":
/// `encoder_layers` and `decoder_layers` of LSTMs of `hidden_size`, the first encoder layer in both
/// directions, shortcuts from the third layer on; attention (Bahdanau et al. 2015) of the first
/// decoder layer's output to the encoder's, whose context all later decoder layers read beside
/// their input; `dropout` (0.2) before each LSTM; tables of `vocab_size` for both languages,
/// shared with `share_embedding` (false), and a classifier with bias. Source and target have
/// `max_position_embeddings` tokens, or as many as asked for. Each embedding, each LSTM and the
/// classifier are a layer; LSTMs are not split by tensor parallelism. Throws Error naming the
/// field.
Graph gnmt_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
