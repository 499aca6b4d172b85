#pragma once

#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/profile.h"

namespace braid {

/// Edges between the layers of `graph`, in bytes per sample. Cost: linear in the graph.
std::vector<ProfileEdge> profile_edges(const Graph& graph);

/// Parameters that operators of several layers read, but for experts', in the order of tensors.
/// Cost: linear in the graph.
std::vector<SharedParameter> shared_parameters(const Graph& graph);

/// A profile of the layers of `graph` on `chip`, to be estimated: a place for the options of each
/// kind, none in them yet.
Profile layer_profile(const Graph& graph, std::string chip, std::vector<ProfileEdge> edges);

}  // namespace braid
