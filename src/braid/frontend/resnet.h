#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Residual network for images (He et al. 2016), from a Hugging Face config with `model_type`
/// "resnet": `hidden_sizes` and `depths` of the stages, `embedding_size` of the stem, `layer_type`
/// "bottleneck" or "basic", `num_labels` (or the size of `id2label`), and `image_size` (224). The
/// stride of a stage is in its first 3×3 convolution (ResNet v1.5), or in the 1×1 before with
/// `downsample_in_bottleneck`. Layers: the stem, each residual block, the head. Convolutions are
/// not split by tensor parallelism. Throws Error naming the field.
Graph resnet_from_config(const Value& config, const std::string& name, const ModelOptions& options);

}  // namespace braid
