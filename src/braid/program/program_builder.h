#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/program/program.h"

namespace braid {

/// A program that is built node by node.
///
///   ProgramBuilder b("dense");
///   const ValueId x = b.input({1, 784});
///   Program p = b.finish({b.node("Relu", {b.node("MatMul", {x, b.weight({784, 10})})})});
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name, std::int64_t opset = 17);

  ValueId input(Shape shape, ElementType type = ElementType::f32, const std::string& name = "");
  /// One whose numbers fill_missing_weights() gives (random_tensor.h).
  ValueId weight(Shape shape, const std::string& name = "");
  ValueId constant(DenseTensor tensor);
  /// A list of whole numbers (i64), and a single real one (f32).
  ValueId integers(std::span<const std::int64_t> numbers);
  ValueId real(double number);
  /// A node with one result. Without a name it is called by its operation and a number.
  ValueId node(const std::string& operation, std::vector<ValueId> inputs,
               std::vector<Attribute> attributes = {}, const std::string& name = "",
               const std::string& domain = "");

  /// Ends the program. Weights are missing still.
  Program finish(std::vector<ValueId> outputs);

 private:
  ValueId value(const std::string& name);
  Program program_;
};

}  // namespace braid
