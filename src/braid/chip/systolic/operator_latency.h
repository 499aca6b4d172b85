#pragma once

#include <cstdint>

#include "braid/chip/accelerator/stated_latency.h"
#include "braid/chip/cores/core_kind.h"
#include "braid/chip/systolic/nest_memo.h"
#include "braid/chip/systolic/operator_work.h"
#include "braid/chip/systolic/systolic_core.h"
#include "braid/graph/graph.h"

namespace braid {

//   NestMemo memo;
//   const OperatorLatencies op = operator_latencies(step, step.operators[3], chip, memo);
//   op.all.cycles / chip.cycles_per_s;              // seconds on all cores

/// Where a vector lane's cycles come from.
enum class LaneCosts : std::uint8_t {
  operations,  ///< One operation of op_work.h in a cycle.
  published    ///< Phaze's table (vector_cycles.h), operations for what it does not have.
};

/// The cores of an accelerator: `tensor.cores` systolic ones, and vector cores beside them, over
/// one global buffer and HBM.
struct AcceleratorCores {
  SystolicMachine tensor;
  std::int64_t vector_cores = 1;
  std::int64_t lanes = 1;  ///< Of one vector core.
  LaneCosts lane_costs = LaneCosts::operations;
  double word_bytes = 2;
  double cycles_per_s = 1.05e9;
  /// Of GEMMs whose shape is here, in place of the mapper's; what they move stays the mapper's.
  StatedLatencies stated;
  friend bool operator==(const AcceleratorCores&, const AcceleratorCores&) = default;
};

/// What an operator takes and moves. Infinite cycles where no mapping fits the buffers.
struct OperatorCost {
  double cycles = 0;
  double tensor_cycles = 0, vector_cycles = 0;  ///< Of each kind of core by itself.
  double bound_cycles = 0;                      ///< No mapping of the nests makes it take fewer.
  double macs = 0, vector_operations = 0;
  /// Accesses of the tensor cores' L2, from the arrays and from the global buffer.
  double l2_words = 0;
  /// Into and out of the vector cores' L2: what they move, and what arrays hand to a fused tail.
  double vector_l2_words = 0;
  double global_words = 0, hbm_words = 0;  ///< Accesses of either; what passes both counts in both.

  /// One after the other.
  OperatorCost& operator+=(const OperatorCost& next);
};

struct OperatorLatencies {
  CoreKind use = CoreKind::none;
  OperatorCost one;  ///< On one core, or one of either kind.
  OperatorCost all;  ///< On all of them. Never more cycles than on one.
};

/// An operator in its pass on one core and on all cores; for every kind (operator_work.h).
///
/// Nests run one after the other, each mapped exactly (nest_mapper.h). Vector cores take
/// ⌈elements / lanes⌉ times an element's cycles, and no less than their words over the rates of the
/// global buffer and HBM. Where they are fused with tensor cores, an operator takes the maximum of
/// both, and of all words over HBM's rate: a tail that lanes cannot keep up with costs time. Else
/// both add up.
OperatorLatencies operator_latencies(const Graph& graph, const Operator& op,
                                     const AcceleratorCores& cores, NestMemo& memo);

/// A GEMM or convolution with the vector operator that alone reads its output, as one: the tensor
/// between them stays on chip. `tail` reads the output of `head`, whose last nest makes it.
OperatorLatencies fused_latencies(const Graph& graph, const Operator& head, const Operator& tail,
                                  const AcceleratorCores& cores, NestMemo& memo);

}  // namespace braid
