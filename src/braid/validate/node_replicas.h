#pragma once

#include <cstdint>
#include <optional>

#include "braid/plan/plan.h"
#include "braid/system/system.h"

namespace braid {

/// One node's part of a job in which every node holds the whole model, sharded over its devices
/// (hybrid sharding; slices of TPUs).
struct NodeReplica {
  System system;  ///< The node.
  Parallelism parallel;
  std::int64_t global_batch = 1;  ///< Samples of the node in an iteration.
};

/// Nullopt where the system is one node, has unlike devices, or its nodes do not divide the
/// data-parallel ranks.
std::optional<NodeReplica> node_replica(const System& system, const Parallelism& parallel,
                                        std::int64_t global_batch);

/// Time in which like devices of all nodes sum their shares of `gradient_bytes`, those of the whole
/// model, all at once.
double sync_nodes_s(const System& system, double gradient_bytes);

}  // namespace braid
