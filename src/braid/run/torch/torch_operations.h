#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "braid/program/program.h"

namespace braid {

/// A value of a program for several samples at once: its own dimensions after one for samples, or
/// for all samples alike (weights) without it.
struct BatchedTensor {
  torch::Tensor tensor;
  bool batched = false;

  /// Dimensions without that of samples.
  std::int64_t rank() const { return tensor.dim() - (batched ? 1 : 0); }
};

/// Computes a node of one result. `operands[i]` is what its input i is; of operands that say how
/// (shapes, axes) the program's constants are read instead. Throws Error, naming the node, for an
/// operation that run_operations() has not, and for attributes that are not done.
BatchedTensor compute_node(const Program& program, const ProgramNode& node,
                           std::span<const BatchedTensor> operands);

/// Computes all nodes, which have one result each, into `values`, which has what they begin with.
void compute_nodes(const Program& program, std::vector<BatchedTensor>& values);

/// The operations that compute_node() does, sorted.
std::vector<std::string> torch_operations();

}  // namespace braid
