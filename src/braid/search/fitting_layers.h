#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/partition.h"

namespace braid {

/// For AssignmentStage::first_allowed: for each right end the least left end such that the layers
/// between fit the form's memory, fits(); the right end itself when not one layer does. A window
/// whose ends only move right: O(layers · shapes of weights).
std::vector<std::int32_t> first_fitting_layers(std::span<const ChainLayer> layers,
                                               const MemoryForm& form, double in_flight);

/// What each layer alone adds to the memory of its stage: all but what only the largest layer of a
/// stage needs (working memory, gathered parameters) and what its layers share (placeholders of
/// gradients).
std::vector<double> additive_layer_bytes(std::span<const ChainLayer> layers, const MemoryForm& form,
                                         double in_flight);

}  // namespace braid
