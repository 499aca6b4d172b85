#pragma once

#include "braid/plan/parallelism.h"
#include "braid/system/system.h"

namespace braid {

/// Copies of fully sharded state where each node of `system` holds one
/// (TrainerBehaviour::node_replicas): its nodes, when `parallel` is ZeRO-3 of one stage on all of
/// them and they are alike, else 1.
int node_replicas(const System& system, const Parallelism& parallel);

}  // namespace braid
