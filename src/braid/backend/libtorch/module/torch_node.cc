#include "braid/backend/libtorch/module/torch_node.h"

#include "braid/base/index.h"

namespace braid {

const TensorForm& TorchNode::form(std::size_t i) const {
  if (!is_there(i)) fail("needs more operands");
  return job_.form(node().inputs[i]);
}

void TorchNode::need_real(std::size_t i) const {
  if (!is_real(form(i).type)) fail("is done for real numbers alone");
}

void TorchNode::need_constants() const {
  for (std::size_t i = 1; i < operand_count(); ++i) {
    if (is_there(i) && !has(i)) fail("has sizes or axes that are computed");
  }
}

void TorchNode::need_one_output() const {
  for (std::size_t i = 1; i < output_count(); ++i) {
    if (wants(i)) fail("is done with one output alone");
  }
}

bool is_torch_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::f32:
    case ElementType::i64:
    case ElementType::i32:
    case ElementType::i16:
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
      return true;
    default:
      return false;
  }
}

at::ScalarType torch_type(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return at::kDouble;
    case ElementType::i64:
      return at::kLong;
    case ElementType::i32:
      return at::kInt;
    case ElementType::i16:
      return at::kShort;
    case ElementType::i8:
      return at::kChar;
    case ElementType::u8:
      return at::kByte;
    case ElementType::boolean:
      return at::kBool;
    default:
      return at::kFloat;
  }
}

at::Tensor torch_view(const DenseTensor& tensor, ImageLayout layout) {
  // The library takes no memory that it may not write; it writes outputs alone.
  auto* const memory = const_cast<std::byte*>(tensor.data.data());
  const Shape& s = tensor.shape;
  if (layout == ImageLayout::plain) {
    return at::from_blob(memory, s, torch_type(tensor.type));
  }
  const Shape strides{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  return at::from_blob(memory, s, strides, torch_type(tensor.type));
}

}  // namespace braid
