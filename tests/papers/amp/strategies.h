#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "papers/amp/cost.h"
#include "papers/amp/model.h"

namespace braid {

/// A strategy with its layers assigned.
struct AmpChoice {
  AmpStrategy strategy;
  Ends ends;
  double cost_s = 0;
};

/// All degrees and micro-batch sizes, devices left out: tp has times and divides the devices of
/// every node, dp · pp · tp = devices, pp is at most the number of layers, dp · micro-batch divides
/// the batch. By rising tp, dp, micro-batch.
std::vector<AmpStrategy> amp_degrees(const AmpModel& model, const AmpCluster& cluster,
                                     std::int64_t global_batch);

/// Rank r on device r: shards next to each other, then replicas, then stages, which is Megatron's
/// order and AMP's.
std::vector<std::int32_t> rank_order(const AmpCluster& cluster);

/// Assigns the layers exactly (equation 5) and costs the strategy by AMP's own model. nullopt when
/// there are fewer layers than stages.
std::optional<AmpChoice> amp_evaluate(const AmpModel& model, const AmpCluster& cluster,
                                      const AmpStrategy& strategy, std::int64_t global_batch,
                                      const AmpRules& rules);

/// AMP's search (algorithm 1): every element of amp_degrees() in rank order, best first.
std::vector<AmpChoice> amp_search(const AmpModel& model, const AmpCluster& cluster,
                                  std::int64_t global_batch, const AmpRules& rules);

/// Budget and seed of the searches at random.
struct AmpRandomOptions {
  std::int32_t chains = 2;
  std::int32_t steps = 50;  ///< Of each chain.
  std::uint64_t seed = 1;
};

/// AMP's randomised search (§6.3): simulated annealing over tp, dp, micro-batch and placement. The
/// devices form a mesh, a column for each node; every stage is a rectangle of tp × dp devices,
/// upright (shards in a node) or lying (replicas in a node), and a random tiling gives the stages
/// in the order of their first devices. Its temperature falls from 10 to 0 seconds. Nodes of
/// unequal size are kept in rank order. What was seen, best first, each strategy once.
std::vector<AmpChoice> amp_anneal(const AmpModel& model, const AmpCluster& cluster,
                                  std::int64_t global_batch, const AmpRules& rules,
                                  const AmpRandomOptions& options);

/// As many strategies as the chains have steps, drawn at random with devices in random order.
std::vector<AmpChoice> amp_draw(const AmpModel& model, const AmpCluster& cluster,
                                std::int64_t global_batch, const AmpRules& rules,
                                const AmpRandomOptions& options);

}  // namespace braid
