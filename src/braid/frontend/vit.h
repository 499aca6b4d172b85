#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// A vision transformer that classifies images (Dosovitskiy et al. 2021; Hugging Face's
/// ViTForImageClassification, without a pooler). A sample is one image: a sequence of its patches
/// and the class token, so that a sequence length cannot be chosen. As many classes as `num_labels`
/// says or `id2label` names, else 2. Layers: embedding, a layer per block, head. Throws Error
/// naming the field.
Graph vit_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
