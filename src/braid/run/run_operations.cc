#include "braid/run/run_operations.h"

#include <algorithm>
#include <array>

#include "braid/base/error.h"
#include "braid/frontend/graph_program.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 26> kOperations = {"Add",
                                                          "BatchNormalization",
                                                          "Concat",
                                                          "Conv",
                                                          "Div",
                                                          "Experts",
                                                          "Gather",
                                                          "Gelu",
                                                          "Gemm",
                                                          "GlobalAveragePool",
                                                          "LayerNormalization",
                                                          "MatMul",
                                                          "MaxPool",
                                                          "Mul",
                                                          "RMSNormalization",
                                                          "ReduceMean",
                                                          "ReduceSum",
                                                          "Relu",
                                                          "Reshape",
                                                          "Sigmoid",
                                                          "Slice",
                                                          "Softmax",
                                                          "Sub",
                                                          "Swish",
                                                          "Tanh",
                                                          "Transpose"};

}  // namespace

std::span<const std::string_view> run_operations() { return kOperations; }

void check_operations(const Program& program) {
  for (const ProgramNode& node : program.nodes) {
    const bool known = node.domain == (node.operation == "Experts" ? kBraidDomain : "") &&
                       node.outputs.size() == 1 &&
                       std::binary_search(kOperations.begin(), kOperations.end(), node.operation);
    if (known) continue;
    throw Error(program.name + ": the operation " + node.operation + " of " + node.name +
                    " cannot be trained by braid run",
                "take a model without it");
  }
}

}  // namespace braid
