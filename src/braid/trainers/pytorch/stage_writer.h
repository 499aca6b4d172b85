#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/run/staged_model.h"
#include "braid/trainers/pytorch/layer_writer.h"

namespace braid {

/// A layer in its stage.
struct PlacedLayer {
  LayerId layer = 0;
  Recompute recompute = Recompute::none;
};

/// All that stages are written from; what it points to outlives it.
struct StageTexts {
  const ModelFacts* facts = nullptr;
  const std::vector<WrittenLayer>* layers = nullptr;  ///< [layer]
  std::vector<std::string> classes;                   ///< [layer]
  std::vector<std::string> members;                   ///< [layer]: its name in its stage's module.
};

/// A stage, or a chunk of one, as the class of a module.
struct WrittenStage {
  std::string text;
  std::vector<ValueId> takes, gives;
  bool recomputes = false;
};
WrittenStage written_stage(const StageTexts& texts, const std::string& name,
                           const std::vector<PlacedLayer>& layers);

}  // namespace braid
