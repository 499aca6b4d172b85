#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/profile/layer_sharding.h"
#include "braid/profile/mapped_layer.h"

namespace braid {

/// A sharding of a layer that nobody wrote by hand.
struct AutoSharding {
  std::string name;           ///< "sharded", the fastest, or "sharded-small", of fewest parameters.
  std::vector<Split> splits;  ///< By operator of the layer.
  friend bool operator==(const AutoSharding&, const AutoSharding&) = default;
};

/// Layers of a model sharded as find_layer_sharding() finds best. Keeps references, and one copy of
/// the graph.
class ShardedLayers {
 public:
  ShardedLayers(const Graph& graph, const Precision& precision, const System& system);

  /// The fastest sharding over `how.tp` ranks and, where that leaves a rank fewer parameters, the
  /// fastest of those that leave fewest. None where there is no sharding. `works` is the layer's
  /// layer_work(), here and below.
  std::vector<AutoSharding> shardings(LayerId layer, std::span<const OperatorWork> works,
                                      const Execution& how, const LayerGroups& groups) const;
  /// What the layer costs sharded so.
  LayerCost cost(LayerId layer, std::span<const OperatorWork> works, const Execution& how,
                 const LayerGroups& groups, const AutoSharding& sharding);
  /// An option of a layer that runs so, but for its cost: "tp4:sharded full recompute". Where the
  /// sharding leaves every operator to every rank, it says so of all of them.
  Option option(LayerId layer, const Execution& how, const AutoSharding& sharding) const;

 private:
  const Graph& graph_;
  const Precision& precision_;
  const System& system_;
  ShardingInput input_;
  ShardedGraph sharded_;
  MappedLayers mapped_;
};

/// Layers that hand a tensor to one another that the graph's own sharding leaves sharded: their
/// options as the graph divides them only go with one another, not with those that take and leave
/// every tensor whole. Linear in the graph.
std::vector<bool> borders_sharded(const Graph& graph);

/// By kind, as many as there are layers at most: whether one of its layers is such.
std::vector<bool> kinds_closed(const Graph& graph);

/// The degrees of tensor parallelism from 2 to `most`, ascending, that automatic shardings allow:
/// some operator can be sharded, and every layer has a sharding of its own or, where its kind is
/// not closed, the graph's. Cost: the operators of one layer of each kind for each divisor of their
/// widths.
std::vector<int> auto_degrees(const Graph& graph, std::int64_t most);

}  // namespace braid
