#pragma once

#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/systolic/operator_latency.h"
#include "braid/graph/graph.h"
#include "braid/system/chip.h"

namespace braid {

//   NestMemo memo;
//   const CoreLayer layer = core_layer(training_graph(graph), 1,
//   cores_of(load_chip("phaze-tpuv4")), memo); schedule_cores(layer.problem).schedule.makespan_s;
//   // the forward pass of layer 1

/// A layer of a graph as work for the cores of an accelerator.
struct CoreLayer {
  CoreProblem problem;
  /// Of each operator of the problem: one of the graph, or a GEMM and the vector operator that is
  /// fused behind it.
  std::vector<std::vector<OperatorId>> operators;
  /// Of each operator of the problem, what its times are of.
  std::vector<OperatorLatencies> latencies;
};

/// The cores of a chip that is an accelerator, with the memory that the chip has. Its words are of
/// the accelerator's format.
AcceleratorCores cores_of(const Chip& chip);

/// Operators of the layer, as they stand in the graph (so those of a backward layer of a training
/// graph are its gradients), with their latencies on one core and on all, and who waits for whom in
/// the layer. A vector operator is fused behind the GEMM or convolution whose output it alone
/// reads, and the two take what is less, fused or one after the other. So nothing is ever slower on
/// a chip with more cores or larger buffers. Throws Error where no mapping of an operator fits the
/// buffers. Cost: operator_latencies() of each.
CoreLayer core_layer(const Graph& graph, LayerId layer, const AcceleratorCores& cores,
                     NestMemo& memo);

}  // namespace braid
