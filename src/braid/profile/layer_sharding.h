#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/profile/estimator.h"
#include "braid/profile/operator_splits.h"

namespace braid {

/// Operators of a layer that a sharding is looked for in, at most.
constexpr OperatorId kMostShardedOperators = 512;

/// What a sharding of a layer's operators is judged by; what comes second breaks ties.
enum class ShardingAim : std::uint8_t {
  time,       ///< Both passes and what is computed again, then parameters of a rank.
  parameters  ///< Parameters of a rank, then time.
};

/// A sharding of the operators of one layer over the ranks of a tensor-parallel group.
struct LayerSharding {
  std::vector<Split> splits;  ///< By operator of the layer.
  /// Seconds for a micro-batch: kernels and tensor-parallel collectives of both passes and of
  /// recomputation, nothing hidden. Of the estimate (estimate_layer) all but what context and
  /// expert parallelism exchange and waiting for the host.
  double time_s = 0;
  double parameters = 0;  ///< Elements on one rank.
  bool optimal = true;    ///< False when a local search had to do.
};

/// Everything about a model that shardings of its layers depend on.
struct ShardingInput {
  std::vector<FeatureAxis> features;           ///< feature_axes().
  std::vector<std::vector<TensorId>> leaving;  ///< By layer: outputs that other layers read, or
                                               ///< the graph's.
  std::vector<bool> is_shared;                 ///< By tensor: a parameter of several layers.

  /// Whether the operator reads such a parameter, and so is sharded as the model says.
  bool fixes(const Operator& op) const;
};
ShardingInput sharding_input(const Graph& graph);

/// The best way to divide each operator (operator_splits) of a layer over `how.tp` ranks, in time
/// on the actual network, jointly and exactly: what tensors cost depends on how their writer and
/// all of their readers are sharded, and operators are eliminated one after the other (chip's
/// elimination.h), as DFModel does with kernels. Tensors enter and leave the layer whole on every
/// rank, so that layers sharded any way go with one another. No sharding when how.tp is 1, under
/// sequence parallelism, when the layer's experts or shared parameters cannot be sharded so, or
/// when it has more than kMostShardedOperators: `splits` is then empty. Past `most_entries` entries
/// of a table a local search takes over. Cost: up to cubic in the layer's operators, and the
/// entries of the tables.
LayerSharding find_layer_sharding(const LayerInput& layer, const ShardingInput& input,
                                  const Execution& how, const LayerPlace& place, ShardingAim aim,
                                  std::size_t most_entries = std::size_t{1} << 20);

/// A copy of a graph in which the operators of one layer at a time are sharded as wanted.
class ShardedGraph {
 public:
  explicit ShardedGraph(const Graph& graph);

  /// The graph with the layer's operators sharded so, and all others done by every rank, until the
  /// next call. For estimate_layer(), with the layer's `leaving` made whole. Linear in this layer
  /// and that of the last call.
  const Graph& with(LayerId layer, std::span<const Split> splits);

 private:
  Graph graph_;
  LayerId sharded_ = 0;
};

}  // namespace braid
