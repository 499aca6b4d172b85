#pragma once

#include <functional>
#include <span>
#include <vector>

#include "braid/backend/kernel/tensor_form.h"
#include "braid/program/program.h"

namespace braid {

/// Called for each node with its operands and results, in the order of the program.
using NodeObserver = std::function<void(NodeId node, std::span<const DenseTensor* const> inputs,
                                        std::span<const DenseTensor> outputs)>;

/// Computes a program's outputs from its inputs with the reference kernels, node by node. Tensors
/// are freed after their last reader. `inputs` are in the order of Program::inputs.
///
/// Throws Error for inputs of another number, type or shape than the program's, for weights that
/// are missing (fill_missing_weights), operations without a kernel, and where a kernel does.
std::vector<DenseTensor> run(const Program& program, std::span<const DenseTensor> inputs,
                             const NodeObserver& observer = {});

/// The type and shape of every value in a run with these inputs, by value; of values that no kernel
/// computes, a scalar. Shapes of ONNX may depend on numbers, so that this is a whole run.
std::vector<TensorForm> forms_of(const Program& program, std::span<const DenseTensor> inputs);

/// Inputs of a program with random_tensor()'s numbers. Throws Error, naming the input, where a
/// shape is not known.
std::vector<DenseTensor> random_inputs(const Program& program, std::uint64_t seed);

}  // namespace braid
