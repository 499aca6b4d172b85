#pragma once

#include <algorithm>
#include <cstdint>

#include "braid/base/index.h"
#include "braid/chip/systolic/systolic_core.h"

namespace braid {

// The terms of nest_cost() that the search bounds, too.

/// For a ≥ 0 and b > 0.
constexpr std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The fewest pieces of `whole` whose largest is smaller than that of `pieces` pieces; whole + 1
/// where that is a single unit.
constexpr std::int64_t next_pieces(std::int64_t whole, std::int64_t pieces) {
  const std::int64_t largest = quotient_up(whole, pieces);
  return largest == 1 ? whole + 1 : quotient_up(whole, largest - 1);
}

inline double cycles_at(double words, double words_per_cycle) {
  return words_per_cycle > 0 ? words / words_per_cycle : 0;
}

/// Words of an operand of `words` that passes `times` times; all but the first sums are continued,
/// so read as well as written.
constexpr double passed_words(double words, double times, bool output) {
  return words * (output ? 2 * times - 1 : times);
}

/// Before the first pass and after the last.
inline double fill_cycles(const SystolicArray& array) {
  return static_cast<double>(2 * array.rows + array.columns - 2);
}

/// Cycles of a core's passes over its `share` of the streamed dimension in so many rounds, each of
/// max(piece, rows): Σ is max(share, rounds · rows), as pieces differ by one at most.
inline double streamed_cycles(std::int64_t share, std::int64_t rounds, std::int64_t rows) {
  return static_cast<double>(std::max(share, rounds * rows));
}

/// Composition of a core's cycles with those of the global buffer and of HBM.
inline double overlapped_cycles(bool l2_doubled, bool global_doubled, double core, double global,
                                double hbm) {
  const double inner = l2_doubled ? std::max(core, global) : core + global;
  return global_doubled ? std::max(inner, hbm) : inner + hbm;
}

}  // namespace braid
