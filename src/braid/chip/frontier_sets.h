#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/fitting_sets.h"
#include "braid/chip/partition_sums.h"
#include "braid/graph/bitset.h"

namespace braid {

struct FrontierBudget {
  std::size_t labels = 1'000'000;  ///< Partial sets that are kept at once, about.
  std::int64_t steps = 500'000;    ///< To find the order (frontier_order.h).
  double subsets = 4'000'000;      ///< Of all frontiers together.
  std::size_t widest = 18;         ///< Frontier, at most 30.
};

/// Which sets to look for.
struct FrontierQuery {
  double least_excess_bytes = 0;  ///< All that exceed the prices by more.
  std::size_t sets = 5;           ///< At most so many of each last kernel, those of most excess.
  /// A partial set that so many others are at least as good as is dropped. With more than one, sets
  /// of less than the most excess may be missed where a row has many labels.
  std::size_t better = 1;
  std::size_t row_labels = 1000;  ///< Of one subset of the frontier.
  double traffic_per_sram = 0.2;  ///< About what a byte of SRAM saves, to begin with.
};

struct FrontierAnswer {
  /// By last kernel in the order, the most excess first. With FrontierQuery::better of one, the
  /// first one's `excess_bytes` is at least that of every such set that fits.
  std::vector<std::vector<FittingSet>> sets;
  double traffic_per_sram = 0;  ///< For the next query.
  std::int64_t work = 0;        ///< Numbers read and written, about.
};

/// The sets of kernels that exceed prices of all that fit on chip and lie between two downsets,
/// however many sets these are, by dynamic programming over a narrow frontier.
///
/// Kernels are taken or left one after the other, in an order in which few of those decided share a
/// tensor with any that is not: the frontier. What a kernel adds to a set's traffic and to its SRAM
/// depends on the taken ones of the frontier alone. So, for each subset of the frontier, labels are
/// kept: excess and SRAM so far, and which kernels of the frontier come behind or before a taken
/// one; none that another is as good as in all of these.
///
/// A pass backwards finds what a label can gain at most, with SRAM paid for at a fixed price
/// instead of limited (Lagrangian relaxation; the least of three prices counts), and labels that
/// cannot come to exceed the prices are dropped, which is most. Where too many are left, several
/// are joined to one as good as each. No set that fits is missed. Sets need not be connected and
/// may have more kernels than the chip has tiles.
class FrontierSets {
 public:
  FrontierSets(const MapperTables& tables, const FrontierBudget& budget = {});

  /// Whether there is a limit of SRAM, and the frontier is narrow enough.
  bool complete() const { return !steps_.empty(); }

  FrontierAnswer exceeding(std::span<const double> prices, const FrontierQuery& query = {}) const;

  /// What a set reads and writes.
  double traffic_bytes(const std::vector<std::uint32_t>& set) const;

 private:
  struct Tensor {
    std::uint32_t writer = 0;
    std::vector<std::uint32_t> readers;
    double bytes = 0;
  };
  struct Step {
    std::uint32_t kernel = 0;
    std::uint32_t places = 0;            ///< Of the frontier so far; the kernel gets the next.
    std::size_t first_row = 0;           ///< A row for each subset of the frontier so far.
    std::uint32_t above = 0, below = 0;  ///< Places that reach it through decided ones, or it them.
    std::vector<std::uint32_t> leaving;  ///< Places without the later ones, the last first.
  };
  class Search;

  std::vector<std::vector<std::uint32_t>> list_tensors();
  void plan(const std::vector<std::uint32_t>& order,
            const std::vector<std::vector<std::uint32_t>>& near);
  void add_rows(const Step& step, const std::vector<std::uint32_t>& frontier);
  bool is_between_downsets(const std::vector<std::uint32_t>& set) const;

  const MapperTables& tables_;
  std::size_t labels_;
  double sram_bytes_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::uint32_t>> tensors_of_;
  std::vector<Bitset> above_, below_;  ///< Kernels that one needs, and that need it.
  std::vector<Step> steps_;
  /// By row, what the kernel saves in traffic, rounded up, and needs of SRAM, rounded down;
  /// -infinity where it cannot be taken.
  std::vector<float> gain_bytes_, added_sram_bytes_;
  float largest_gain_bytes_ = 0, largest_sram_bytes_ = 0;
  std::vector<std::uint32_t> place_;  ///< In the topological order.
};

}  // namespace braid
