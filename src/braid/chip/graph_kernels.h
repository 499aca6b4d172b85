#pragma once

#include <cstdint>

#include "braid/chip/dataflow_chip.h"
#include "braid/chip/kernel_graph.h"
#include "braid/graph/graph.h"
#include "braid/system/chip.h"

namespace braid {

/// What a kernel graph has of training.
enum class GraphPasses : std::uint8_t {
  forward,
  gradients,  ///< Forward and backward pass.
  step        ///< And the optimizer's step.
};

/// The kernels of layers [first, last) of a forward graph, with the tensors between them:
/// - a GEMM has its output features as M, its input features as K and its rows as N,
///   which is streamed; convolutions and recurrent cells are the GEMMs that they amount to;
/// - attention is three kernels, with its scores between them: Q·K, softmax, scores·V (masked
///   scores are counted too);
/// - routed experts are two GEMMs per expert, their tokens spread evenly;
/// - everything else is elementwise on its output; table look-ups read DRAM; views are nothing.
/// What comes from or goes to outside of these layers is DRAM traffic of the kernels concerned.
///
/// The backward pass runs through the operators in reverse, as gradients_of() says what each
/// needs:
/// - a GEMM by parameters gives two of the same size: the gradient of its rows, with the
///   parameters, and that of the parameters, which streams the rows, is added up on chip and
///   written to DRAM once (Kernel::gradient_bytes); a GEMM of two tensors gives theirs;
/// - attention gives the gradients of scores·V, of the softmax and of Q·K, four GEMMs. Its
///   probabilities are kept, or with Attention::flash made again from Q and K;
/// - routed experts give two GEMMs for each of theirs, and that of what lies between;
/// - everything else gives an elementwise kernel on each input, another for its parameters. Sums
///   hand their gradient on as it is;
/// - gradients of a tensor from several readers are added up by NAME.gradient_sum, or lie side by
///   side where each is a part of it.
/// Forward tensors that it reads are tensors from forward to backward kernels: what waits in DRAM
/// between them. Masks of a byte an element are DRAM traffic.
///
/// The step of an operator's parameters (NAME.step) is elementwise and moves parameters, gradients
/// and an fp32 copy and two moments, 12 bytes a parameter; it waits for the gradients.
///
/// All numbers but these have `word_bytes` bytes. Throws Error when a backward operator is among
/// the operators or nothing is.
KernelGraph kernels_of(const Graph& graph, LayerId first, LayerId last, double word_bytes,
                       GraphPasses passes = GraphPasses::forward);

/// Parameters of these layers that are only looked up, so that no kernel holds them.
double table_elements(const Graph& graph, LayerId first, LayerId last);

/// A catalogue chip as tiles: a compute unit is a tile as wide as one of its GEMMs'
/// tiles, at the rate that makes the chip's peak for `dtype`; elementwise work uses its lanes.
/// Throws Error when the chip lists no such peak or no on-chip memory.
DataflowChip dataflow_chip(const Chip& chip, Dtype dtype);

}  // namespace braid
