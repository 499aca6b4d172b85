#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "papers/amp/strategies.h"

namespace braid {

struct AmpPlacementOptions {
  std::int64_t most_states = 20'000;  ///< Partial placements made, in all.
};

struct AmpPlacementResult {
  std::optional<AmpChoice> best;
  double bound_s = 0;  ///< No placement that was allowed costs less.
  std::int64_t states = 0;

  /// By how much of its cost the best may still be improved on; 0: it is proven best.
  double gap() const { return best.has_value() ? 1 - bound_s / best->cost_s : 0; }
};

/// The placement of least cost for any of these degrees by AMP's model (amp_cost) with each stage
/// at the speed of its own devices, layers assigned exactly for each placement. Shards of a replica
/// share a node, as AMP's tp allows; devices of a node are taken for alike, as its links are.
///
/// Best first over partial placements, stage by stage, each stage a node for every replica. Only
/// placements that can differ in cost are made: replicas with the same history are interchangeable,
/// and so are unused nodes whose devices and links are the same. The bound of a partial placement
/// is the exact assignment with the stages still to come on the fastest free devices behind the
/// fastest links, plus the least that synchronisation takes however the parameters lie on the
/// stages. The placement in rank order is tried first.
AmpPlacementResult amp_place(const AmpModel& model, const AmpCluster& cluster,
                             std::span<const AmpStrategy> degrees, std::int64_t global_batch,
                             const AmpRules& rules, const AmpPlacementOptions& options);

}  // namespace braid
