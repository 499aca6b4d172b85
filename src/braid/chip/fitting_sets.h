#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/partition_sums.h"

namespace braid {

/// A set of kernels that can be a partition, in topological order.
struct FittingSet {
  std::vector<std::uint32_t> kernels;
  double traffic_bytes = 0;  ///< In tensors that it reads or writes; up to 1e-7 of it less.
  double excess_bytes = 0;   ///< Its kernels' prices less that.
};

/// The connected sets of kernels that fit on chip together and lie between two downsets. Kernels
/// are neighbours when one reads the other's output or, where readers share it, both read a third
/// one's. A set's root is its first kernel in MapperTables::order.
class FittingSets {
 public:
  /// Lists them, as long as that takes at most `most` sets to look at, 8 bytes each, and a sample
  /// of roots does not show that it takes many more. Every neighbour of a set is in turn taken or
  /// left for good; what a set needs on chip, counted so that it only grows, cuts branches off.
  /// Needs fewer than 2^16 kernels.
  FittingSets(const MapperTables& tables, std::size_t most);

  /// Whether all are listed.
  bool complete() const { return complete_; }

  /// The `most` sets of a root with the greatest excess, of those above `least_excess`; the
  /// greatest first. Linear in the sets of the root.
  std::vector<FittingSet> most_excess(std::uint32_t root, std::span<const double> prices,
                                      double least_excess, std::size_t most) const;

  /// The root alone; its excess at the price.
  FittingSet alone(std::uint32_t root, double price) const;

 private:
  /// Kernels are taken one after the other; a node stands for those on the path that leads to it.
  struct Node {
    float traffic_bytes = 0;  ///< Infinite where the set lies not between two downsets.
    std::uint16_t kernel = 0;
    std::uint16_t depth = 0;
  };
  class Listing;

  static bool are_many(const MapperTables& tables, std::size_t most);

  std::vector<std::vector<Node>> nodes_;  ///< Of each root, after each node all it leads to.
  std::vector<std::uint32_t> place_;      ///< In the topological order.
  bool complete_ = true;
};

}  // namespace braid
