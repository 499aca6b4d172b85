#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// BERT as it is pre-trained (Devlin et al. 2019, §3.1; Hugging Face's BertForPreTraining),
/// whatever `architectures` says: the encoder with its pooler, the masked-language head, whose
/// output projection is the embedding table, and the next-sentence head. Logits are computed at all
/// positions. The encoder with its pooler alone (BertModel) has hidden² + vocab + 5·hidden + 2
/// parameters fewer. Layers: embedding, a layer per block, head. Throws Error naming the field.
Graph bert_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
