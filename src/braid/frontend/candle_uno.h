#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/frontend/model.h"

namespace braid {

/// Response of tumour cells to drugs (ECP-CANDLE, Pilot1 Uno), from a config with `model_type`
/// "candle_uno": `features`, an object of names and widths, each read by a dense stack of the
/// widths `feature_layers`; their outputs side by side, dense layers of the widths `dense_layers`
/// (may be empty), and a linear layer of `num_labels` (1: the growth). `bias` (true) says whether
/// layers have one. Each dense layer is a layer of the graph; all features meet in the layer
/// "join". Throws Error naming the field.
Graph candle_uno_from_config(const Value& config, const std::string& name,
                             const ModelOptions& options);

}  // namespace braid
