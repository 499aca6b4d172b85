#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/partition.h"

namespace braid {

/// For AssignmentStage::first_allowed: for each right end the least left end such that the layers
/// between need at most the form's memory, device_bytes(); the right end itself when not one layer
/// fits. Host memory is not looked at. A window whose ends only move right: O(layers).
std::vector<std::int32_t> first_fitting_layers(std::span<const ChainLayer> layers,
                                               const MemoryForm& form, double in_flight);

/// The first of the last of `layers` that fit the form's memory together, host memory too; their
/// number when not even the last one does. Linear in the layers that fit.
std::int32_t first_of_longest_run(std::span<const ChainLayer> layers, const MemoryForm& form,
                                  double in_flight);

/// What each layer alone adds to the memory of its stage: all but what only the largest layer of a
/// stage needs (working memory, gathered parameters).
std::vector<double> additive_layer_bytes(std::span<const ChainLayer> layers, const MemoryForm& form,
                                         double in_flight);

}  // namespace braid
