#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/partition.h"

namespace braid {

/// Splits of one chain into runs of layers as even as can be, memory ignored: partition_min_max for
/// many numbers of pieces. Neighbours that take equally long are placed together, so that a split
/// of a deep model of few kinds of layers costs little more than its pieces.
class EvenSplits {
 public:
  EvenSplits() = default;
  explicit EvenSplits(std::span<const ChainLayer> layers);
  /// Layer l is one of `kinds`: kind_of_layer[l].
  EvenSplits(std::span<const std::int32_t> kind_of_layer, std::span<const ChainLayer> kinds);

  bool empty() const { return layers_ == 0; }

  /// Least possible largest piece time; `pieces` is at most the number of layers. Where `ends` is
  /// not null it gets the split itself, later pieces filled first. Cost: O(pieces + different
  /// neighbours) for each bound tried.
  double split(int pieces, Ends* ends) const;

 private:
  /// Neighbours of equal time.
  struct Run {
    double time_s = 0;
    std::int32_t begin = 0;
  };
  void add_layer(double time_s);
  /// Fills pieces from the last one backwards up to `bound`; whether all layers were placed, and
  /// the least bound at which a piece could take one more.
  bool fill(int pieces, double bound, Ends* ends, double& next_bound) const;

  std::vector<Run> runs_;
  std::int32_t layers_ = 0;
  double total_s_ = 0, slowest_s_ = 0;
};

}  // namespace braid
