#pragma once

#include <vector>

#include "braid/profile/layer_sharding.h"

namespace braid {

/// Options that nobody wrote by hand: the layer's operators divided over `how.tp` ranks as
/// find_layer_sharding() does for time, "tp4:sharded", and, where that leaves a rank fewer
/// parameters, for these, "tp4:sharded-small". None where there is no division.
std::vector<Option> sharded_options(const Graph& graph, LayerId layer, const ShardingInput& input,
                                    std::span<const OperatorWork> works, const Execution& how,
                                    const Precision& precision, const LayerGroups& groups,
                                    const System& system);

/// Layers that hand a tensor to one another that the graph's own division leaves divided: their
/// options as the graph divides them only go with one another, not with those that take and leave
/// every tensor whole. Linear in the graph.
std::vector<bool> borders_divided(const Graph& graph);

}  // namespace braid
