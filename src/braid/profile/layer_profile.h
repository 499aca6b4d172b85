#pragma once

#include <cstdint>
#include <span>
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

/// Makes `costs` [kind], of layers run as `how`, those of a single stage: it has one copy of what
/// several layers read, which the first of them counts, or, where later ones are of its kind as
/// repeated blocks with the same table are, all of these together. Cost: linear in the layers times
/// the parameters.
void count_shared_once(std::span<const SharedParameter> shared,
                       std::span<const std::int32_t> kind_of_layer, const Execution& how,
                       std::span<LayerCost> costs);

/// Bytes per sample that each layer puts out for others, every tensor once. Linear in the graph.
std::vector<double> layer_output_bytes(const Graph& graph);

/// By layer: the tensors it writes that other layers read, or that are the graph's outputs, in
/// ascending order. Cost: linear in the graph.
std::vector<std::vector<TensorId>> leaving_tensors(const Graph& graph);

/// A profile of the layers of `graph` on `chip`, to be estimated: a place for the options of each
/// kind, none in them yet. What a layer puts out is stated where its edges do not tell.
Profile layer_profile(const Graph& graph, std::string chip, std::vector<ProfileEdge> edges);

}  // namespace braid
