#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/mapped_layer.h"
#include "braid/profile/precision.h"
#include "braid/profile/profile.h"
#include "braid/system/collective.h"
#include "braid/system/system.h"

namespace braid {

/// "tp8 sp cp2 full recompute": what sets an option apart.
std::string name_of(const Execution& how);

/// Communicators that a layer's own collectives run on.
struct LayerGroups {
  GroupSpan tp, cp, ep;
  friend bool operator==(const LayerGroups&, const LayerGroups&) = default;
};

/// A layer that is estimated, perhaps many ways.
struct LayerInput {
  const Graph& graph;
  LayerId layer = 0;
  std::span<const OperatorWork> works;  ///< Its layer_work().
  /// Outputs that every rank has to have whole in the end, however they are sharded in the layer.
  std::span<const TensorId> made_whole = {};
  /// What is known of the layers on a dataflow chip, of this graph but for its splits; may be null.
  MappedLayers* mapped = nullptr;
  /// Else times on a dataflow chip are those of its operators one by one, which are found at once.
  bool maps_kernels = true;
};

/// What it runs on: chips of a homogeneous system, in these formats.
struct LayerPlace {
  const Precision& precision;
  const LayerGroups& groups;
  const System& system;
};

/// Cost of one layer run as `how` says. Pure but for `input.mapped`; the layer's time is the sum
/// over its operators of a roofline with shape-dependent efficiency, on a dataflow chip that of the
/// best mapping of its kernels (mapped_layer.h), plus exposed collectives. Equations and sources:
/// docs/cost-model.md. Throws Error when the chip does not list the peak for the precision. Cost:
/// linear in the works, quadratic in the tensors that the layer reads; on a dataflow chip
/// mapped_times().
LayerCost estimate_layer(const LayerInput& input, const Execution& how, const LayerPlace& place);
/// The same once. Cost: that of layer_work() too.
LayerCost estimate_layer(const Graph& graph, LayerId layer, const Execution& how,
                         const Precision& precision, const LayerGroups& groups,
                         const System& system);

/// Where shardings of layers over tensor-parallel ranks come from.
enum class ShardingSource : std::uint8_t {
  manual,    ///< The model: Operator::split, as Megatron-LM's authors and others devised it.
  automatic  ///< Also a search for the best ones (sharded_options.h).
};

/// Options for all layer kinds over the given executions (those that the model refuses are left
/// out). With `automatic` sharding layers take and leave every tensor whole, so that options of
/// different layers go with one another; shardings of the model that do not (borders_sharded) are
/// left out.
Profile estimate_profile(const Graph& graph, const std::vector<Execution>& executions,
                         const Precision& precision, const System& system,
                         ShardingSource sharding = ShardingSource::manual);

}  // namespace braid
