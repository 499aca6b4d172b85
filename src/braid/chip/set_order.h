#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/partition_sums.h"

namespace braid {

/// Disjoint sets of kernels that can run one after the other, each in one go.
class SetOrder {
 public:
  explicit SetOrder(const MapperTables& tables);

  /// Adds a set that shares no kernel with those before, unless no topological order would be left
  /// in which each set stands together; then nothing changes and the result is false. Linear in the
  /// graph.
  bool add(std::span<const std::uint32_t> set);

  /// A topological order in which each set stands together; kernels of no set alone, those that
  /// wait last.
  std::vector<std::uint32_t> order() const;

 private:
  /// By the least kernel of each set; fewer than all where there is no order.
  std::vector<std::uint32_t> groups() const;

  const MapperTables& tables_;
  std::vector<std::uint32_t> group_;  ///< The least kernel of the set that a kernel is in.
  std::size_t count_;                 ///< Groups.
};

}  // namespace braid
