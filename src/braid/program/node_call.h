#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/program/numbers.h"
#include "braid/program/program.h"

namespace braid {

/// A node with the tensors it works on: what kernels are given. All `fail`s throw an Error that
/// names the node and its operation.
class NodeCall {
 public:
  /// `inputs[i]` is nullptr where the node leaves operand i out.
  NodeCall(const Program& program, const ProgramNode& node,
           std::span<const DenseTensor* const> inputs)
      : program_(&program), node_(&node), inputs_(inputs) {}

  const std::string& operation() const { return node_->operation; }
  const ProgramNode& node() const { return *node_; }
  std::int64_t opset() const { return program_->opset; }

  // Operands.
  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t input) const { return input < inputs_.size() && inputs_[input] != nullptr; }
  const DenseTensor& input(std::size_t input) const;  ///< Fails when it is left out.
  const Shape& shape(std::size_t i) const { return input(i).shape; }
  std::size_t rank(std::size_t i) const { return shape(i).size(); }
  ElementType type(std::size_t i) const { return input(i).type; }
  std::vector<double> reals(std::size_t i) const { return numbers_of<double>(input(i)); }
  std::vector<std::int64_t> integers(std::size_t i) const {
    return numbers_of<std::int64_t>(input(i));
  }
  /// The only element of an operand; fails when there are none or more.
  double scalar(std::size_t i) const;
  /// Fails unless there are `least` to `most` operands, the first `least` of them present.
  void need_inputs(std::size_t least, std::size_t most) const;
  void need_rank(std::size_t input, std::size_t least, std::size_t most) const;

  // Attributes. Fail when there is one of another kind.
  bool has_attribute(std::string_view name) const { return node_->attribute(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::int64_t need_integer(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise) const {
    return integer(name, otherwise ? 1 : 0) != 0;
  }
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  const std::vector<std::int64_t>* integers(std::string_view name) const;  ///< nullptr: none.
  const std::vector<double>* reals(std::string_view name) const;
  const std::vector<std::string>* texts(std::string_view name) const;
  const DenseTensor* tensor(std::string_view name) const;
  /// The axes or sizes that newer versions take from operand `input` and older ones from the
  /// attribute `name`. nullopt when neither is there.
  std::optional<Shape> integers_of(std::size_t input, std::string_view name) const;
  /// The type that the attribute says, by ONNX's number.
  ElementType element_type(std::string_view name, ElementType otherwise) const;

  /// `axis`, counted from the end when negative, in [0, rank); fails outside.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;
  /// Which of `rank` dimensions are named; fails for one named outside or twice.
  std::vector<bool> axes(std::span<const std::int64_t> named, std::size_t rank) const;
  /// The shape that arises from broadcasting two against each other as NumPy does.
  Shape broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b) const;

  std::size_t output_count() const { return node_->outputs.size(); }
  bool wants(std::size_t output) const {
    return output < node_->outputs.size() && node_->outputs[output] >= 0;
  }

  [[noreturn]] void fail(const std::string& message, const std::string& remedy = {}) const;

 private:
  const Program* program_;
  const ProgramNode* node_;
  std::span<const DenseTensor* const> inputs_;
};

}  // namespace braid
