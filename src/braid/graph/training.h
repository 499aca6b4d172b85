#pragma once

#include "braid/graph/graph.h"

namespace braid {

/// The graph of one training step of `forward`, which has passed check_graph: its layers; then, for
/// each layer in reverse order, a layer "NAME backward"; then a layer "optimizer".
///
/// - Each operator through which gradients pass gives up to two operators of its own kind, with
///   Operator::pass set: NAME.input_gradient and NAME.weight_gradient (see gradients.h). They read
///   the gradients of its outputs and the forward tensors that they need, so that an edge from a
///   layer to its backward layer holds what is kept meanwhile. forward_work() gives their work;
///   together that of backward_work(). State that an operator keeps for itself (masks, row
///   statistics) is no tensor.
/// - The gradient of a tensor with several readers is added up by an elementwise operator
///   NAME.gradient_sum, in the backward layer of the first reader.
/// - Each floating-point parameter that a gradient reaches gets one OptimizerStep, which reads
///   parameter and gradient and writes the updated parameter, an output of the graph.
/// - The gradient of a tensor that nothing differentiable reads (the loss) is an input of the
/// graph.
///
/// Names that are taken already get a number. Linear in the graph's size.
Graph training_graph(const Graph& forward);

}  // namespace braid
