#pragma once

#include <array>
#include <cstdint>

#include "braid/chip/systolic/loop_nest.h"
#include "braid/chip/systolic/nest_mapping.h"
#include "braid/chip/systolic/nest_terms.h"
#include "braid/chip/systolic/systolic_core.h"

namespace braid {

inline constexpr std::size_t kOutputDim = static_cast<std::size_t>(NestOperand::output);
inline constexpr std::size_t kBatchDim = 3;

/// How one of NestDeals' flows is dealt out over the cores: logarithms of the cores of m, n, k and
/// of the batch.
struct Deal {
  int flow = 0;
  std::array<int, 4> log{};
};

/// One choice of what is doubled, and what no mapping of it stays below.
struct Buffering {
  bool l2_doubled = true, global_doubled = true;
  double l2_words = 0, global_words = 0;  ///< For one copy of the tiles.
  double least_global_cycles = 0, least_hbm_cycles = 0;

  double overlapped(double core, double global, double hbm) const {
    return overlapped_cycles(l2_doubled, global_doubled, core, global, hbm);
  }
};

/// What a core takes at least: passes without fill, words between L2 and array.
struct LeastCore {
  double passes = 0, l2 = 0;
};

/// What a flow's dimensions are dealt out by, over the logarithm of a dimension's cores.
struct FlowTables {
  static constexpr std::size_t kDoublings = 40;
  ArrayFlow flow = ArrayFlow::weight_stationary;
  FlowUnits units;
  std::array<int, 4> most{};                               ///< Logarithm of the most cores.
  std::array<std::array<double, kDoublings>, 4> share;     ///< Units of the busiest core.
  std::array<std::array<double, kDoublings>, 4> elements;  ///< Elements of it; not of the batch.
};

/// All ways to deal a nest out over a machine's cores, and bounds of what mappings of one take. A
/// helper of map_nest(), which it prunes.
class NestDeals {
 public:
  NestDeals(const LoopNest& nest, const SystolicMachine& machine);

  int flows() const { return flow_count_; }
  const FlowTables& tables(int flow) const { return tables_[static_cast<std::size_t>(flow)]; }
  int doublings() const { return doublings_; }  ///< Logarithm of the cores that are used.
  const std::array<Buffering, 4>& bufferings() const { return bufferings_; }
  /// The deal with the least core cycles.
  const Deal& least_deal() const { return least_deal_; }

  /// Core cycles that no rounds stay below; none grows with more cores of a dimension.
  LeastCore least_core(const Deal& deal) const;
  double core_cycles(const LeastCore& core) const;

  /// Whether core cycles alone leave room below `cycles`. Where not, neither do fewer cores of any
  /// dimension.
  bool core_may_take_less(const Buffering& buffering, const Deal& deal, double cycles) const;
  /// Whether no bound keeps mappings of the deal from taking less than `cycles`.
  bool may_take_less(const Buffering& buffering, const Deal& deal, double cycles) const;

  /// What rounds take at least, and the limit that a mapping of them is to stay below.
  struct RoundCycles {
    double core = 0, global = 0, limit = 0;
  };
  /// Whether some steps over rounds of at least so many elements of m, n and k may keep below the
  /// limit. A step holds a whole number of such rounds, or of larger ones that are multiples.
  bool steps_may_take_less(const Buffering& buffering, double batch_cores,
                           const std::array<std::int64_t, 3>& round, const RoundCycles& of) const;

  /// Cycles that no mapping with this buffering stays below.
  double bound_of(const Buffering& buffering) const;
  /// Makes the bufferings' bounds of HBM words those of the best steps.
  void bound_hbm();

  /// Words of an operand of one batch that passes so often.
  double moved_words(std::size_t operand, double times) const {
    return passed_words(once[operand], times, operand == kOutputDim);
  }

  std::array<std::int64_t, 3> sizes;
  std::array<double, 3> once{};  ///< Words of each operand of one batch.
  double fill = 0;
  double array_rate = 0;                 ///< Cycles of a word.
  double global_rate = 0, hbm_rate = 0;  ///< Cycles of a word of every batch.

 private:
  using Counts = std::array<std::int64_t, 3>;

  void set_flows();
  void set_bufferings();
  void find_least_deal();
  double least_global_cycles(const Buffering& buffering, const std::array<int, 4>& log) const;
  /// HBM cycles that no steps stay below whose tiles hold at least `round` elements along each
  /// dimension. With what stays chosen, x·y + s·(x + y) words are held, so with p = √(xy)
  /// p² + 2·s·p at most; V multiplications read the operands that lack x and y V/x and V/y times,
  /// 2V/p or more.
  double least_hbm_cycles(const Buffering& buffering, double batch_cores,
                          const std::array<double, 3>& round) const;
  double fewest_hbm_words(double words, const Counts& unit) const;
  /// The same, kept: many deals and rounds have equal units.
  double least_hbm_words(double words, const Counts& unit) const;
  bool has_shared_words() const { return nest_.window.used || nest_.on_chip != 0; }

  const LoopNest& nest_;
  const SystolicMachine& machine_;
  double once_all_ = 0, hbm_once_ = 0;
  int doublings_ = 0, flow_count_ = 0;
  std::array<FlowTables, kArrayFlows> tables_;
  std::array<Buffering, 4> bufferings_;
  Deal least_deal_;
  double least_core_cycles_ = 0;
  struct KnownWords {
    Counts unit{};
    double buffer_words = 0, least = 0;
  };
  mutable std::array<KnownWords, 64> known_words_{};
};

}  // namespace braid
