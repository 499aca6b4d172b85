#pragma once

#include <cstddef>
#include <span>

#include <ATen/ATen.h>

#include "braid/backend/kernel/backend.h"
#include "braid/program/node_call.h"

namespace braid {

/// A node of a job as operations are made for it: its operands are the constants alone, and the
/// types and shapes of all tensors are known. What is not done throws Error.
class TorchNode : public NodeCall {
 public:
  /// `constants[i]` is nullptr where operand i is fed or left out.
  TorchNode(const KernelJob& job, const ProgramNode& node,
            std::span<const DenseTensor* const> constants)
      : NodeCall(job.region, node, constants), job_(job) {}

  std::size_t operand_count() const { return node().inputs.size(); }
  bool is_there(std::size_t i) const { return i < operand_count() && node().inputs[i] >= 0; }
  const TensorForm& form(std::size_t i) const;  ///< Of an operand; fails where it is left out.
  const TensorForm& out_form(std::size_t i = 0) const { return job_.form(node().outputs[i]); }
  std::size_t rank_of(std::size_t i) const { return form(i).shape.size(); }
  /// The operand's axis that an attribute names.
  std::int64_t axis_of(std::size_t i, std::int64_t axis_number) const {
    return static_cast<std::int64_t>(axis(axis_number, rank_of(i)));
  }
  void need_real(std::size_t i) const;  ///< Fails for whole numbers.
  /// Fails where an operand behind the first is computed: sizes, axes.
  void need_constants() const;
  void need_one_output() const;  ///< Fails where a second one is wanted.

 private:
  const KernelJob& job_;
};

/// Whether tensors of that type can be handed over: all but those of 16 bits and unsigned ones of
/// more than 8.
bool is_torch_type(ElementType type);
at::ScalarType torch_type(ElementType type);

/// A tensor of libtorch over the same memory.
at::Tensor torch_view(const DenseTensor& tensor, ImageLayout layout);

}  // namespace braid
