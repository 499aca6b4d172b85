#include "braid/backend/pattern/operator_class.h"

#include <map>

namespace braid {

OperatorClass operator_class(std::string_view operation) {
  using enum OperatorClass;
  static const std::map<std::string_view, OperatorClass> classes{
      {"Abs", elementwise},
      {"Clip", elementwise},
      {"Elu", elementwise},
      {"Erf", elementwise},
      {"Exp", elementwise},
      {"Gelu", elementwise},
      {"HardSigmoid", elementwise},
      {"HardSwish", elementwise},
      {"Identity", elementwise},
      {"LeakyRelu", elementwise},
      {"Log", elementwise},
      {"Neg", elementwise},
      {"Reciprocal", elementwise},
      {"Relu", elementwise},
      {"Sigmoid", elementwise},
      {"Softplus", elementwise},
      {"Sqrt", elementwise},
      {"Swish", elementwise},
      {"Tanh", elementwise},
      {"Add", broadcast},
      {"Div", broadcast},
      {"Max", broadcast},
      {"Min", broadcast},
      {"Mul", broadcast},
      {"PRelu", broadcast},
      {"Pow", broadcast},
      {"Sub", broadcast},
      {"Where", broadcast},
      {"Concat", injective},
      {"Expand", injective},
      {"Flatten", injective},
      {"Gather", injective},
      {"Pad", injective},
      {"Reshape", injective},
      {"Resize", injective},
      {"Slice", injective},
      {"Split", injective},
      {"Squeeze", injective},
      {"Transpose", injective},
      {"Unsqueeze", injective},
      {"Upsample", injective},
      {"ReduceMax", reduction},
      {"ReduceMean", reduction},
      {"ReduceMin", reduction},
      {"ReduceSum", reduction},
      {"AveragePool", fusable},
      {"Conv", fusable},
      {"ConvTranspose", fusable},
      {"Gemm", fusable},
      {"GlobalAveragePool", fusable},
      {"LayerNormalization", fusable},
      {"MatMul", fusable},
      {"MaxPool", fusable},
      {"Softmax", fusable},
  };
  const auto found = classes.find(operation);
  return found == classes.end() ? opaque : found->second;
}

}  // namespace braid
