#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

enum class FabricShape : std::uint8_t { ring, fully_connected, switched };

/// What the chips along one dimension of a fabric divide among them.
enum class FabricRole : std::uint8_t { none, tensor, pipeline, data };

/// One dimension of a product of one-dimensional networks: a torus has rings in all of them, a
/// dragonfly full meshes, DGX-1 a ring and a switch, DGX-2 two switches.
struct FabricDimension {
  FabricShape shape = FabricShape::ring;
  std::int64_t size = 1;
  double bytes_per_s = 0;  ///< Of one chip into this dimension, as the published inputs give it.
  FabricRole role = FabricRole::none;
  friend bool operator==(const FabricDimension&, const FabricDimension&) = default;
};

/// The network between chips.
struct Fabric {
  std::vector<FabricDimension> dimensions;
  /// Chips per domain of full bandwidth in a rail-only network (the first dimension's bandwidth
  /// inside, the other dimensions' between domains); 0: the dimensions as they are.
  double domain_size = 0;
  double latency_s = 0;  ///< Of one hop.
  /// Links across a switch's bisection for each of its chips, when every chip sends to every other
  /// (DFModel's published runs have 1/2 or 2).
  double switch_bisection = 0.5;
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// How DFModel's collectives are priced: its published formulas, for its own model of a cluster
/// alone. Times of plans come from system/collective.h.
struct CollectiveRules {
  /// 2: an all-reduce moves the bytes twice (reduce-scatter, then all-gather), as any algorithm
  /// must; 1: as some of DFModel's published runs have it.
  double all_reduce_passes = 2;
  /// Charge the fabric's latency for each step.
  bool latency = true;
  friend bool operator==(const CollectiveRules&, const CollectiveRules&) = default;
};

/// Chips that dimensions of `role` span together; 1 when none has it.
std::int64_t degree_of(const Fabric& fabric, FabricRole role);

// Times of collectives in one dimension, in seconds; 0 for a dimension of one chip. `bytes` is the
// whole tensor. With n chips and bandwidth B, as the published program has them:
//   ring, switch:     all-reduce p S (n-1)/(n B), all-gather S (n-1)/(n B)
//   fully connected:  p S/(n B), S/(n B)
//   all-to-all:       S n^2/(8 B) on a ring, S/B fully connected, S n/(4 B) through a switch
// Latency (its newest version): n - 1 steps per pass of a ring, ceil(log2 n) of a switch, one of a
// full mesh.
double all_reduce_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules);
double all_gather_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules);
double all_to_all_s(double bytes, const FabricDimension& dimension, const Fabric& fabric,
                    const CollectiveRules& rules);

/// The same over all chips that dimensions of `role` span: dimension by dimension, each with the
/// share that the earlier ones leave. In a rail-only fabric with domains of H chips, n chips take
/// (n-1)/(n B0) when H >= n, else (H-1)/(H B0) + (n/H - 1)/(n B), times p S, with the bandwidth B
/// of the second dimension for tensor and the third for data parallelism.
double all_reduce_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules);
double all_gather_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules);
double all_to_all_s(double bytes, FabricRole role, const Fabric& fabric,
                    const CollectiveRules& rules);

/// Over all chips of the fabric, whatever their roles: dimension by dimension as above.
double all_reduce_s(double bytes, const Fabric& fabric, const CollectiveRules& rules);

/// Every chip sends `pair_bytes` to every other chip of the fabric: the slowest dimension's
/// bisection, N^2/2 pairs of them over B g links, where g is 2 for a ring (times the sizes of the
/// other dimensions in a torus), x^2/2 for a full mesh, switch_bisection x for a switch; x(x-1)/2
/// pairs in an inner dimension that is no torus's.
double exchange_s(double pair_bytes, const Fabric& fabric);

/// Time of a message of `bytes` between neighbours in the pipeline: over the slowest dimension of
/// that role. 0 without one.
double pipeline_hop_s(double bytes, const Fabric& fabric, const CollectiveRules& rules);

}  // namespace braid
