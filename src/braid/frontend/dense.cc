#include "braid/frontend/dense.h"

#include <vector>

namespace braid {

Features dense_stack(GraphBuilder& builder, const DenseStack& stack, Features x,
                     std::span<const std::int64_t> widths) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string name = stack.name + std::to_string(i);
    const bool first_of_pair = i % 2 == 0 && i + 1 < widths.size();
    const Split split = first_of_pair ? Split::column : i % 2 == 1 ? Split::row : Split::replicated;
    builder.begin_layer(name);
    x.tensor = builder.linear(name, x.tensor, {1, x.width, widths[i]}, stack.bias, split);
    x.width = widths[i];
    if (stack.ends_linear && i + 1 == widths.size()) break;
    x.tensor =
        builder.add(name + ".relu", Elementwise{x.width, 1, Elementwise::Keeps::mask}, {x.tensor},
                    {1, x.width}, first_of_pair ? Split::features : Split::replicated);
  }
  return x;
}

Features feature_input(GraphBuilder& builder, const std::string& name, std::int64_t width) {
  return {builder.input(name, {1, width}, Dtype::bf16), width};
}

Features concatenate(GraphBuilder& builder, const std::string& name,
                     std::span<const Features> parts) {
  if (parts.size() == 1) return parts.front();
  std::vector<TensorId> inputs;
  std::int64_t width = 0;
  for (const Features& part : parts) {
    inputs.push_back(part.tensor);
    width += part.width;
  }
  return {builder.add(name, DataMovement{}, std::move(inputs), {1, width}, Split::replicated),
          width};
}

}  // namespace braid
