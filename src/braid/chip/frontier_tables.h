#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "braid/chip/partition_sums.h"
#include "braid/graph/bitset.h"

namespace braid {

struct FrontierBudget {
  std::size_t labels = 1'000'000;  ///< Partial sets that are kept at once, about.
  std::int64_t steps = 500'000;    ///< To find the order (frontier_order.h).
  double subsets = 4'000'000;      ///< Of all frontiers together.
  std::size_t widest = 18;         ///< Frontier, at most 30.
};

constexpr float kCannotTake = -std::numeric_limits<float>::infinity();

/// What each kernel adds to a set of kernels, by which kernels of the frontier the set holds.
///
/// Kernels are taken or left one after the other, in an order in which few of those decided share a
/// tensor with any that is not: the frontier. What a kernel adds to a set's traffic and to its SRAM
/// depends on the taken ones of the frontier alone, so a step has a row for each subset of it.
///
/// For example, in a chain a → b → c taken in this order the frontier of b is {a}. Row 0 (a left)
/// says that b reads a's tensor and writes its own; row 1 (a taken) that a's tensor is neither
/// written nor read.
class FrontierTables {
 public:
  struct Step {
    std::uint32_t kernel = 0;
    std::uint32_t places = 0;            ///< Of the frontier so far; the kernel gets the next.
    std::size_t first_row = 0;           ///< A row for each subset of the frontier so far.
    std::uint32_t above = 0, below = 0;  ///< Places that reach it through decided ones, or it them.
    std::vector<std::uint32_t> leaving;  ///< Places without the later ones, the last first.
  };

  FrontierTables(const MapperTables& tables, const FrontierBudget& budget);

  /// Whether every kernel on a path between two of the set is in it, so that the set is what a
  /// downset adds to another.
  bool is_between_downsets(const std::vector<std::uint32_t>& set) const;

  /// What a set reads and writes.
  double traffic_bytes(const std::vector<std::uint32_t>& set) const;

  std::vector<Step> steps;  ///< None without a limit of SRAM, or where the frontier is too wide.
  /// By row, what the kernel saves in traffic, rounded up, and needs of SRAM, rounded down;
  /// kCannotTake where it cannot be taken.
  std::vector<float> gain_bytes, added_sram_bytes;
  float largest_gain_bytes = 0, largest_sram_bytes = 0;

 private:
  struct Tensor {
    std::uint32_t writer = 0;
    std::vector<std::uint32_t> readers;
    double bytes = 0;
  };

  std::vector<std::vector<std::uint32_t>> list_tensors();
  void list_steps(const std::vector<std::uint32_t>& order,
                  const std::vector<std::vector<std::uint32_t>>& near);
  void add_rows(const Step& step, const std::vector<std::uint32_t>& frontier);

  const MapperTables& tables_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::uint32_t>> tensors_of_;
  std::vector<Bitset> above_, below_;  ///< Kernels that one needs, and that need it.
};

}  // namespace braid
