#pragma once

#include <memory>
#include <vector>

#include "braid/backend/libtorch/module/torch_operation.h"

namespace braid {

/// A job as calls of ATen, one after the other, with its weights. A product with a constant matrix
/// and the bias behind it are one call, as in modules of frameworks.
class TorchNetwork {
 public:
  /// Throws Error for what is not done (torch_operation.h).
  TorchNetwork(const KernelJob& job, const KernelLayouts& layouts);

  /// A tensor for each output of the job, from one for each of its inputs. Results are freed after
  /// their last reader.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

  /// The same for a job of one output whose memory is there already.
  void run_into(const std::vector<at::Tensor>& inputs, at::Tensor& output);

 private:
  struct Step {
    TorchOperation operation;
    std::vector<ValueId> inputs, outputs;
    std::vector<ValueId> ends;  ///< What nothing after it reads.
  };

  void add_step(const KernelJob& job, const ProgramNode& node);
  bool add_linear(const KernelJob& job, const ProgramNode& node);
  /// The Add that alone reads a node's result and adds a constant row; nullptr where there is none.
  const ProgramNode* bias_behind(const KernelJob& job, const ProgramNode& node) const;
  void find_ends(const KernelJob& job);
  const std::vector<at::Tensor>& operands_of(const Step& step);
  void feed(const std::vector<at::Tensor>& inputs);

  std::vector<ValueId> inputs_, outputs_;
  std::vector<Step> steps_;
  std::vector<bool> is_done_;  ///< By node: computed by the step of a node before it.
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> operands_;
};

}  // namespace braid
