#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "braid/chip/grown_sets.h"
#include "braid/chip/kernel_mapper.h"
#include "braid/chip/partition_sums.h"
#include "braid/graph/bitset.h"

namespace braid {

/// A* over the downsets of a kernel graph: a partition is the difference of two, a mapping a path
/// from the empty set to that of all kernels. What map_kernels() searches by. Cost: the partitions
/// and downsets of its budget at most; 256 MB for kernels that may join.
class DownsetSearch {
 public:
  /// `floors`: traffic_floors(), or zeros. Only mappings that take less than `upper_s` are looked
  /// for. Keeps references to tables, budget and floors.
  DownsetSearch(const MapperTables& tables, const MapperBudget& budget,
                const std::vector<double>& floors, double upper_s);

  /// True when nothing better than the upper bound is left out.
  bool run();

  /// Sets of kernels, first partition first; empty when nothing beats the upper bound.
  std::vector<Bitset> partitions() const;

  double lower_bound_s() const { return lower_bound_s_; }  ///< Where run() was false.
  std::int64_t looked_at() const { return looked_at_; }
  std::int64_t kept() const { return static_cast<std::int64_t>(nodes_.size()); }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// A downset; its number is that of its set.
  struct Node {
    double so_far_s = PartitionSums::kImpossible;
    double bound_s = 0;
    double compute_s = 0, network_s = 0, traffic_bytes = 0, floor_bytes = 0;  ///< Of its kernels.
    std::uint32_t parent = kNone;
    std::uint32_t seen = 0;
    std::uint32_t first_joining = 0, joining = 0;  ///< In joining_.
    bool closed = false;
  };
  using Entry = std::pair<double, std::uint32_t>;

  double bound_of(const Node& node, double cut_bytes) const;
  std::uint32_t follow(std::uint32_t id, std::size_t at);
  void add_joining(std::uint32_t id, std::uint32_t larger, std::uint32_t kernel, Node& node);
  bool walk(std::uint32_t id);
  void improve(std::uint32_t id);

  const MapperTables& tables_;
  const MapperBudget& budget_;
  const std::vector<double>& floors_;
  PartitionSums sums_;
  double upper_s_;
  double compute_s_ = 0, network_s_ = 0, traffic_bytes_ = 0, floor_bytes_ = 0;
  double lower_bound_s_ = 0;
  std::int64_t looked_at_ = 0;
  GrownSets sets_;
  std::vector<Node> nodes_;
  /// Kernels that may join, downset after downset, with the downset that each leads to.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> joining_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
  std::uint32_t whole_ = kNone, start_ = 0, stamp_ = 0;
};

}  // namespace braid
