#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/fitting_sets.h"
#include "braid/chip/partition_sums.h"

namespace braid {

struct FrontierBudget {
  std::size_t levels = 64;       ///< Of bytes on chip.
  std::int64_t steps = 500'000;  ///< To find the order (frontier_order.h).
  double subsets = 4'000'000;    ///< Of all frontiers together.
  std::size_t widest = 18;       ///< Frontier, at most 30.
};

/// The sets of kernels that exceed prices most of all that fit on chip, however many these are, by
/// dynamic programming over a narrow frontier.
///
/// Kernels are taken or left one after the other, in an order in which few of those decided share a
/// tensor with any that is not: the frontier. What a kernel adds to a set's traffic and to its SRAM
/// depends on the taken ones of the frontier alone. So, for each subset of the frontier and each
/// level of SRAM in use, only the greatest excess is kept. All is rounded in the sets' favour,
/// bytes down to levels and excess up to units: no set that fits is missed, some that hardly do not
/// fit count, too. Sets need not be connected and may have more kernels than the chip has tiles; of
/// those that do not lie between two downsets, only what the frontier shows is left out.
class FrontierSets {
 public:
  FrontierSets(const MapperTables& tables, const FrontierBudget& budget = {});

  /// Whether there is a limit of SRAM, and the frontier is narrow enough.
  bool complete() const { return !steps_.empty(); }

  /// For each kernel the set of most excess among those whose last kernel in the order it is.
  /// `excess_bytes` is at least that of every such set that fits, and at least the set's own;
  /// `traffic_bytes` is exact. Without kernels where nothing comes near to fit, as a kernel that
  /// alone is too large.
  std::vector<FittingSet> most_excess(std::span<const double> prices) const;
  /// Numbers that it reads and writes, about.
  std::int64_t work() const { return work_; }

  /// What a set reads and writes.
  double traffic_bytes(const std::vector<std::uint32_t>& set) const;

 private:
  struct Tensor {
    std::uint32_t writer = 0;
    std::vector<std::uint32_t> readers;
    double bytes = 0;
  };
  /// A tensor of the kernel that is decided; bits are places in the frontier.
  struct Link {
    bool writes = false;        ///< The kernel does.
    std::uint32_t writer = 0;   ///< A bit, or 0 when it is the kernel or not decided.
    std::uint32_t readers = 0;  ///< Bits.
    int others = 0;             ///< Readers but the kernel, decided or not.
    double bytes = 0;
  };
  struct Neighbour {
    std::uint32_t bit = 0;
    double saved_bytes = 0;  ///< Of SRAM, when it is taken.
  };
  struct Step {
    std::uint32_t kernel = 0;
    std::uint32_t places = 0;  ///< Of the frontier so far; the kernel gets the next.
    double sram_bytes = 0;     ///< At least added, with no neighbour taken.
    std::vector<Link> links;
    std::vector<Neighbour> neighbours;
    std::uint32_t apart = 0;             ///< Bits of those that it cannot be with.
    std::uint32_t above = 0, below = 0;  ///< Of those that it needs, and that need it.
    std::vector<std::uint32_t> between;  ///< By place, bits of those between the two.
    std::vector<std::uint32_t> leaving;  ///< Places without the later ones, the last first.
  };
  class Tables;

  std::vector<std::vector<std::uint32_t>> list_tensors();
  void plan(const std::vector<std::uint32_t>& order,
            const std::vector<std::vector<std::uint32_t>>& near);
  Step step_of(std::uint32_t kernel, const std::vector<std::uint32_t>& frontier) const;

  const MapperTables& tables_;
  std::size_t levels_;
  double level_bytes_ = 0;
  std::int64_t work_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::uint32_t>> tensors_of_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> place_;  ///< In the topological order.
};

}  // namespace braid
