#pragma once

#include <span>
#include <vector>

#include "braid/backend/kernel/tensor_form.h"
#include "braid/program/program.h"

namespace braid {

/// A program for inputs of fixed types and shapes, without the nodes that need not be run for them:
/// what depends on constants and shapes alone has become a constant, batch normalisations are
/// folded (fold_normalization.h), and operations that were written in parts composed
/// (compose_operations.h).
struct FixedProgram {
  Program program;
  std::vector<TensorForm> forms;  ///< By value.
  /// How long the reference kernel of each node takes, by node.
  std::vector<double> reference_s;
  std::vector<DenseTensor> inputs;    ///< That were given.
  std::vector<DenseTensor> expected;  ///< The reference kernels' answer for them.
};

/// The fixed program for inputs like these. Costs a run with the reference kernels. Throws Error as
/// run() does.
FixedProgram fixed_program(const Program& program, std::span<const DenseTensor> inputs);

}  // namespace braid
