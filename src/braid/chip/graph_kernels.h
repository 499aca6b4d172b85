#pragma once

#include "braid/chip/dataflow_chip.h"
#include "braid/chip/kernel_graph.h"
#include "braid/graph/graph.h"
#include "braid/system/chip.h"

namespace braid {

/// The kernels of layers [first, last) of a forward graph, with the tensors between them:
/// - a matrix product has its output features as M, its input features as K and its rows as N,
/// which
///   is streamed; convolutions and recurrent cells are the products that they amount to;
/// - attention is three kernels, with its scores between them: Q·K, softmax, scores·V (masked
/// scores
///   are counted too);
/// - routed experts are two products per expert, their tokens spread evenly;
/// - everything else is elementwise on its output; table look-ups read DRAM; views are nothing.
/// What comes from or goes to outside of these layers is DRAM traffic of the kernels concerned. All
/// numbers have `word_bytes` bytes. Throws Error when a backward operator is among them or nothing
/// is.
KernelGraph kernels_of(const Graph& graph, LayerId first, LayerId last, double word_bytes);

/// A catalogue chip as tiles: a compute unit is a tile as wide as one of its matrix products'
/// tiles, at the rate that makes the chip's peak for `dtype`; elementwise work uses its lanes.
/// Throws Error when the chip lists no such peak or no on-chip memory.
DataflowChip dataflow_chip(const Chip& chip, Dtype dtype);

}  // namespace braid
