#include "braid/graph/op_work.h"

#include "braid/graph/gradients.h"
#include "braid/graph/pass_work.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

const Tensor& tensor_of(const Graph& graph, TensorId id) {
  return graph.tensors[static_cast<std::size_t>(id)];
}

/// Size of one element of what the operator computes: of its first floating-point tensor.
double element_bytes_of(const Graph& graph, const std::vector<TensorId>& first,
                        const std::vector<TensorId>& then) {
  for (const auto* list : {&first, &then}) {
    for (const TensorId id : *list) {
      const Dtype dtype = tensor_of(graph, id).dtype;
      if (is_floating(dtype)) return bytes_per_element(dtype);
    }
  }
  return bytes_per_element(Dtype::bf16);
}

void add_read(const Graph& graph, TensorId id, PassTensors& tensors) {
  const Tensor& tensor = tensor_of(graph, id);
  (tensor.is_parameter ? tensors.parameter_bytes : tensors.activation_bytes) += bytes_of(tensor);
  tensors.has_parameters = tensors.has_parameters || tensor.is_parameter;
}

/// The tensors that an operator itself reads and writes; operands read twice count once.
PassTensors own_tensors(const Graph& graph, const Operator& op) {
  PassTensors tensors;
  for (const TensorId id : distinct(op.inputs)) add_read(graph, id, tensors);
  for (const TensorId id : op.outputs) tensors.written_bytes += bytes_of(tensor_of(graph, id));
  tensors.element_bytes = op.pass == Pass::forward ? element_bytes_of(graph, op.outputs, op.inputs)
                                                   : element_bytes_of(graph, op.inputs, op.outputs);
  tensors.wanted_gradients = static_cast<int>(op.outputs.size());
  return tensors;
}

/// The tensors of a gradient operator that is not in the graph: gradients are as large as what they
/// are gradients of.
PassTensors gradient_tensors(const Graph& graph, const Gradients& gradients,
                             const std::vector<TensorId>& reads,
                             const std::vector<TensorId>& wanted) {
  PassTensors tensors;
  for (const TensorId id : gradients.outputs) {
    tensors.activation_bytes += bytes_of(tensor_of(graph, id));
  }
  for (const TensorId id : reads) add_read(graph, id, tensors);
  for (const TensorId id : wanted) tensors.written_bytes += bytes_of(tensor_of(graph, id));
  tensors.element_bytes = element_bytes_of(graph, gradients.outputs, wanted);
  tensors.wanted_gradients = static_cast<int>(wanted.size());
  return tensors;
}

}  // namespace

OpWork forward_work(const Graph& graph, const Operator& op) {
  const PassTensors tensors = own_tensors(graph, op);
  switch (op.pass) {
    case Pass::input_gradient:
      return input_gradient_pass_work(op.kind, tensors);
    case Pass::weight_gradient:
      return weight_gradient_pass_work(op.kind, tensors);
    case Pass::forward:
      break;
  }
  return forward_pass_work(op.kind, tensors);
}

BackwardWork backward_work(const Graph& graph, const Operator& op) {
  BackwardWork work;
  const Gradients gradients = gradients_of(graph, op);
  if (!gradients.inputs.empty()) {
    work.input_gradient = input_gradient_pass_work(
        op.kind, gradient_tensors(graph, gradients, gradients.input_reads, gradients.inputs));
  }
  if (!gradients.parameters.empty()) {
    work.weight_gradient = weight_gradient_pass_work(
        op.kind, gradient_tensors(graph, gradients, gradients.weight_reads, gradients.parameters));
  }
  return work;
}

double forward_model_flops(const Graph& graph, const Operator& op) {
  static_cast<void>(graph);
  return op.pass == Pass::forward ? gemm_flops(op.kind) : 0;
}

double backward_model_flops(const Graph& graph, const Operator& op) {
  const Gradients gradients = gradients_of(graph, op);
  if (std::holds_alternative<Attention>(op.kind)) {
    return gradients.inputs.empty() ? 0 : 2 * gemm_flops(op.kind);
  }
  const BackwardWork work = backward_work(graph, op);
  return work.input_gradient.matmul_flops + work.weight_gradient.matmul_flops;
}

std::vector<KeptTensor> kept_for_backward(const Graph& graph, const Operator& op) {
  std::vector<KeptTensor> kept;
  const Gradients gradients = gradients_of(graph, op);
  if (gradients.inputs.empty() && gradients.parameters.empty()) return kept;
  std::vector<TensorId> reads = gradients.input_reads;
  reads.insert(reads.end(), gradients.weight_reads.begin(), gradients.weight_reads.end());
  for (const TensorId id : distinct(reads)) {
    const Tensor& tensor = tensor_of(graph, id);
    if (!tensor.is_parameter) kept.push_back({.tensor = id, .bytes = bytes_of(tensor)});
  }
  const double own =
      private_kept_bytes(op.kind, element_bytes_of(graph, gradients.outputs, op.inputs));
  if (own > 0) kept.push_back({.tensor = -1, .bytes = own});
  return kept;
}

}  // namespace braid
