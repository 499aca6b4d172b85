#pragma once

#include <cstdint>

#include "braid/graph/graph.h"
#include "braid/profile/estimator.h"
#include "braid/system/system.h"

namespace braid {

/// A time per iteration that the network lets no plan beat: the largest over all cuts of the system
/// into units (devices, nodes, what each outer level joins) and over connected parts of the layer
/// graph. For one cut and part, let U be the seconds of arithmetic on the fastest unit, C those in
/// which all units together send the part's narrowest tensor and its gradient for every sample, S
/// those for the gradients of its dense weights and what comes back of them, and W those for the
/// weights that exceed the largest unit's memory. Then
///
///     max(min(U·C / (U + C), S), min(C, W))
///
/// With shardings that the model does not say, ranks may also do the same work twice, in several
/// units: the narrowest tensor is then of any inside a layer too and crosses once in C, and S is
/// what comes back, or the gradients, whichever is less.
///
/// It holds because some unit does much of the work, or many samples go through several units, or
/// two units use the same weights; docs/cost-model.md, "Lower bounds", has the argument. Nominal
/// bandwidth, no latency; experts and embedding tables are left out. With a bandwidth matrix, the
/// units are the devices. 0 on one device. Throws Error when a chip does not list the peak for the
/// precision. Cost: linear in the graph, sorting its layers' edges, and layers x levels.
double network_bound_s(const Graph& graph, const Precision& precision, std::int64_t global_batch,
                       const System& system, ShardingSource sharding = ShardingSource::manual);

}  // namespace braid
