#include "braid/graph/working_precision.h"

#include "braid/graph/tensor_size.h"

namespace braid {

void set_working_precision(Graph& graph, Dtype activation, Dtype parameter) {
  constexpr int least_bits = 16;
  for (Tensor& tensor : graph.tensors) {
    if (!is_floating(tensor.dtype) || bits_per_element(tensor.dtype) < least_bits) continue;
    tensor.dtype = tensor.is_parameter ? parameter : activation;
  }
}

}  // namespace braid
