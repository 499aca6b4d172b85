#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/chip/mapping.h"
#include "braid/chip/tile_curve.h"
#include "braid/graph/bitset.h"

namespace braid {

/// What the search for mappings needs of the kernels, looked up fast.
struct MapperTables {
  struct Tensor {
    std::uint32_t other = 0;  ///< Its writer or reader.
    double bytes = 0;
    double crossing_bytes = 0;  ///< SRAM when it crosses.
    double inner_bytes = 0;     ///< SRAM when it stays.
  };
  struct Kernel {
    double compute_s = 0;  ///< Over the whole chip; with whole tiles a bound.
    double network_s = 0;
    double traffic_bytes = 0;  ///< Its own, parameters included when they are charged.
    double weight_bytes = 0;
    bool waits = false;         ///< For all kernels that do not: the backward pass.
    double output_bytes = 0;    ///< The largest tensor, when tensors are shared.
    double crossing_bytes = 0;  ///< Of all its outputs.
    std::uint32_t shape = 0;    ///< Kernels of one shape have equal tile curves.
    std::vector<Tensor> inputs, outputs;
  };

  /// `known`: tile curves of all kernels, or none.
  MapperTables(const ChipWork& work, const DataflowChip& chip, const MappingRules& rules,
               std::span<const TileCurve> known = {});

  std::vector<Kernel> kernels;
  std::vector<std::uint32_t> order;  ///< Topological, those that wait last.
  std::size_t first_to_run = 0;      ///< How many do not wait.
  std::vector<TileCurve> curves;     ///< With whole tiles.
  std::vector<double> cycles;        ///< All steps of all curves, ascending.
  /// [step in `cycles` · shapes + Kernel::shape]: fewest tiles for that time, more than the chip
  /// has where none do. Empty where it would be too large.
  std::vector<std::int32_t> tiles_at;
  std::size_t shapes = 0;
  DataflowChip chip;
  MappingRules rules;
  double resident_bytes = 0, live_copies = 1;
  double most_bytes_per_s = 0;  ///< Of main memory.
  double seconds_per_cycle = 0;

 private:
  /// `curve_of_shape`: into `curves`.
  void fill_tiles_at(std::span<const std::size_t> curve_of_shape);
};

/// A partition that is put together kernel by kernel behind a downset; each kernel that is added
/// has all its writers in the downset or the partition.
class PartitionSums {
 public:
  struct Sums {
    double compute_s = 0, network_s = 0, traffic_bytes = 0, weight_bytes = 0;
    double reads = 0;    ///< Bytes of tensors from the downset to the partition.
    double writes = 0;   ///< From the partition to later ones.
    double passing = 0;  ///< From the downset to later ones, not read yet.
    double sram_bytes = 0;
  };

  explicit PartitionSums(const MapperTables& tables);

  /// An empty partition behind `before`. Cost: the kernels, and the tensors of those that were not
  /// before it until now; where some were that are not any more, the graph.
  void begin(const Bitset& before);
  /// Empties the partition and moves it behind one kernel more, whose writers are all before it.
  /// Cost: the partition's kernels and that one, with their tensors.
  void move_behind(std::uint32_t kernel);
  /// Whether the kernel may be in this partition, as far as its pass is concerned.
  bool accepts(std::uint32_t kernel) const {
    return forward_done_ || !tables_.kernels[kernel].waits;
  }
  /// Adds a kernel; the result undoes it.
  Sums add(std::uint32_t kernel);
  /// Undoes the latest add.
  void undo(const Sums& earlier);

  const Sums& sums() const { return sums_; }
  std::size_t size() const { return members_.size(); }

  /// Whether no larger partition can be, whatever is added.
  bool is_full() const;
  static constexpr double kImpossible = kInfinity;
  /// Time of the partition as it is; kImpossible when it does not fit. When it is at least
  /// `enough`, any time that is at least that.
  double time_s(double enough) const;
  /// Bytes that later partitions read at least.
  double cut_bytes() const { return sums_.passing + sums_.writes; }

 private:
  enum class Side : std::uint8_t { before, inside, after };

  void clear();
  void rebuild(const Bitset& before);
  void put_before(std::uint32_t kernel);

  /// Whether the members get done within the step of MapperTables::cycles, side by side.
  bool fits_in(std::size_t step) const;
  /// How long the members compute. What is at most `hidden_s` or at least `enough_s` may be any
  /// time of which that is true too.
  double compute_s(double hidden_s, double enough_s) const;

  const MapperTables& tables_;
  Sums sums_;
  Bitset before_;
  double cut_before_ = 0;
  std::size_t run_before_ = 0;  ///< Kernels before that wait for none.
  bool forward_done_ = false;
  std::vector<Side> side_;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> unread_;  ///< Readers of an output that are neither before nor inside.
  std::vector<std::uint32_t> read_;    ///< Readers inside of an output from before.
};

/// A time that no mapping of the kernels behind a downset beats, from sums over them.
double remaining_bound_s(const MapperTables& tables, double compute_s, double network_s,
                         double traffic_bytes, double cut_bytes);

}  // namespace braid
