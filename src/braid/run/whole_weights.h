#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "braid/run/parameter_groups.h"
#include "braid/run/safetensors.h"

namespace braid {

/// Under which a piece of a group is written by the rank that does.
std::string piece_name(std::size_t group, std::size_t piece);

/// All parameters, by name, put together from the pieces that ranks have written. Throws Error
/// where one is missing.
std::vector<NamedTensor> whole_weights(const LayeredProgram& model,
                                       std::span<const ParameterGroup> groups,
                                       const std::vector<NamedTensor>& pieces);

}  // namespace braid
