#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "braid/program/dense_tensor.h"
#include "braid/program/node_call.h"

namespace braid {

/// What an operation computes, by plain loops: one tensor for each output of the node, or fewer
/// where the last ones are not wanted. Real arithmetic is in double and its result rounded once to
/// the output's type, so that other kernels can be judged by it. Throws Error, naming the node, for
/// operands that do not fit and for what is not supported.
using ReferenceKernel = std::vector<DenseTensor> (*)(const NodeCall& call);

struct ReferenceEntry {
  std::string_view operation;
  ReferenceKernel kernel;
};

/// The kernel of an operation of ONNX's own domain (""), or of "com.microsoft"; nullptr when there
/// is none.
ReferenceKernel reference_kernel(std::string_view domain, std::string_view operation);

/// All operations that have one, sorted by name.
std::vector<std::string_view> reference_operations();

}  // namespace braid
