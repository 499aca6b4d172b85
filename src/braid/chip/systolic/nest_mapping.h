#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "braid/chip/systolic/loop_nest.h"
#include "braid/chip/systolic/systolic_core.h"

namespace braid {

/// How a nest runs on a machine's cores. The space of all mappings that map_nest() searches:
///
/// - *Folds.* The array holds `rows` elements of one dimension and `columns` of another; so these
///   two are cut into folds of that many, the last one smaller. A unit of the third, which streams,
///   is one element. What follows cuts units.
/// - *Cores.* Each dimension is cut over cores[d] cores, powers of two whose product is at most
///   the machine's cores; k too: partial sums are then added up in the global buffer.
/// - *Rounds.* Dimension d is cut into cores[d] · rounds[d] pieces, as even as they can be, larger
///   ones first; in a round each core works on one, neighbours on neighbouring pieces. Any number
///   of rounds that leaves no piece empty. Both buffers keep room for the largest piece. Rounds of
///   the batch come outermost (nothing is reused from one to the next, so no order is better).
/// - *Steps.* The rounds of dimension d are cut into steps[d] even groups, 1 ≤ steps ≤ rounds: what
///   lies in the global buffer at a time.
/// - *Orders.* Of the loops over steps and, inside, of those over the rounds of a step: any. What
///   counts is the innermost loop that turns at all, for the operand that lacks its dimension stays
///   where it is. `global_stays` and `l2_stays` name that operand.
/// - *Units' words.* folds[0] and folds[1] neighbouring folds of the two dimensions on the array
///   (in the order rows, columns) share a pass, at most array.unit_words together.
/// - *Double buffering* of each level, or not.
struct NestMapping {
  ArrayFlow flow = ArrayFlow::weight_stationary;
  bool l2_doubled = true, global_doubled = true;
  NestOperand l2_stays = NestOperand::output, global_stays = NestOperand::output;
  std::int64_t batch_cores = 1;
  std::array<std::int64_t, 3> cores = {1, 1, 1};  ///< Of m, n and k.
  std::array<std::int64_t, 3> rounds = {1, 1, 1};
  std::array<std::int64_t, 3> steps = {1, 1, 1};
  std::array<std::int64_t, 2> folds = {1, 1};
  friend bool operator==(const NestMapping&, const NestMapping&) = default;
};

/// What a mapping takes. Counts are of the whole nest.
struct NestCost {
  double cycles = 0;
  double array_cycles = 0;   ///< Passes of the busiest core, with fill and drain.
  double l2_cycles = 0;      ///< Its words between L2 and array, over their rate.
  double global_cycles = 0;  ///< Words between global buffer and L2.
  double hbm_cycles = 0;     ///< Words between HBM and global buffer.
  double l2_words = 0;       ///< Accesses of all L2 from the arrays.
  double global_words = 0;   ///< Read and written between the global buffer and L2.
  double hbm_words = 0;
};

/// The cost of a mapping, or nullopt where its tiles exceed a buffer.
///
/// *Array.* A pass of a piece of s streamed elements takes max(s, rows) cycles: meanwhile the next
/// stationary elements are shifted in, row by row. Before the first pass this takes `rows` cycles,
/// and `rows + columns − 2` more until the last sum is out (skew): once for the nest, or in every
/// round where the L2 is not doubled. Cores work in lockstep; the busiest one of each round counts.
///
/// *L2 to array.* The stationary operand once for each pass, the streamed ones once for each group
/// of folds that shares a pass; a sum that is continued is read and written.
///
/// *Global buffer to L2.* A tile that several cores need is read once for all (multicast). An
/// operand is read again for each round of a loop of the dimension that it lacks, unless only
/// loops in which it stays turn inside; sums that are continued are read and written.
///
/// *HBM to global buffer.* The same for steps.
///
/// *Time.* max(array, L2 words over their rate) on the core; with a doubled L2 the maximum of this
/// and global words over their rate, else their sum; with a doubled global buffer the maximum of
/// this and HBM words over their rate, else their sum. A doubled buffer holds tiles of half its
/// size. The first tile's load and the last one's store are not added.
std::optional<NestCost> nest_cost(const LoopNest& nest, const SystolicMachine& machine,
                                  const NestMapping& mapping);

/// Units of dimension {m, n, k} that a flow cuts: folds of those on the array, elements of the
/// streamed one; and elements of a unit.
struct FlowUnits {
  std::array<std::int64_t, 3> elements = {1, 1, 1};
  std::array<std::int64_t, 3> units = {1, 1, 1};
  int rows = 0, columns = 0, streamed = 0;  ///< Dimensions.
};
FlowUnits flow_units(const LoopNest& nest, const SystolicArray& array, ArrayFlow flow);

}  // namespace braid
