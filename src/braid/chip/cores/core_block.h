#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/operator_order.h"
#include "braid/graph/bitset.h"

namespace braid {

/// An operator of a block, with what its search asks for most.
struct BlockOperator {
  CoreOperator work;
  bool may_spread = false;  ///< Less time on all cores than on one: else one is never worse.
  std::vector<std::int32_t> earlier;  ///< Of the block, directly before it.
  std::vector<std::int32_t> later;
  Bitset before;           ///< All that come before it.
  std::int32_t twin = -1;  ///< One with the same work and order that is to begin first; -1: none.
  /// The same number as others that are the same for all that begins after they are ready: they
  /// take the same time, and each one's successors wait for it alone and are the same in turn. -1:
  /// others wait for a successor too.
  std::int32_t alike = -1;
  double shortest_s = 0;  ///< Its time, as it may be.
  double after_s = 0;     ///< What passes at least between its end and the end of all.
};

/// What of a chip's cores can run out in a block. Under AllCoresRule::alone, cores of a kind of
/// which there are as many as operators could ever run at once are not counted; under own_kind no
/// more than these.
struct BlockCores {
  std::size_t tensor = 0;  ///< Counted tensor cores; 0: they cannot run out.
  std::size_t vector = 0;
  std::size_t pairs = 0;  ///< The first of both are paired; 0: no operator needs a pair.
};

/// A lower bound on the makespan of what is left: a mean, with weights that add up to 1, of what
/// tensor cores, vector cores and chains of operators need at least. While an operator runs alone
/// all of these wait, so that it counts its time on all cores; else it counts its time on one core,
/// times what the weights say (the Lagrangian dual of the choice of modes).
struct MeanBound {
  double tensor = 0;
  double vector = 0;
  double chains = 0;
  std::vector<double> cost_s;   ///< Of each operator.
  std::vector<double> through;  ///< What share of the chains goes through each.
  std::vector<bool> spread;     ///< Who costs least on all cores.
};

/// A part of a problem that is scheduled by itself.
struct CoreBlock {
  std::vector<std::int32_t> places;      ///< Of its operators in the order that it was made from.
  std::vector<BlockOperator> operators;  ///< Topologically ordered.
  BlockCores cores;
  AllCoresRule rule = AllCoresRule::alone;
  std::vector<MeanBound> bounds;
  std::size_t fused = 0;  ///< How many operators need a pair of counted cores.
  double bound_s = 0;     ///< No schedule takes less.
};

/// The block of operators [first, last) of an order that is cut there.
CoreBlock make_block(const CoreProblem& problem, const OperatorOrder& order, std::size_t first,
                     std::size_t last);

/// Adds to the block's bounds some that are good for what is left when the first 1/n, 2/n … of the
/// operators in this order have begun, and makes after_s and bound_s of the block what they then
/// are. Nothing where the block has few operators.
void add_bounds_along(const std::vector<std::int32_t>& order, CoreBlock& block);

/// What comes of weights that are the best for the operators in `left`, as far as is found by
/// playing against each other (fictitious play: Brown 1951): the modes of the operators answer the
/// weights, and what is then busiest gains weight. It is a bound for any set of operators that are
/// left.
MeanBound mean_bound(const CoreBlock& block, const Bitset& left);

/// The bound that one kind of cores gives: weight 1 on these.
MeanBound core_bound(const CoreBlock& block, CoreKind kind);

}  // namespace braid
