#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "braid/program/dense_tensor.h"

namespace braid {

using ValueId = std::int32_t;  ///< -1 stands for an operand that is left out.
using NodeId = std::int32_t;

/// A number, a text or a list of them; a tensor; or what no operation here takes.
using AttributeValue =
    std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>, std::shared_ptr<const DenseTensor>>;

struct Attribute {
  std::string name;
  AttributeValue value;
};

/// One operation, as ONNX defines it in the program's version.
struct ProgramNode {
  std::string name;    ///< Its own; that of the Graph's operator, where there is one.
  std::string domain;  ///< "" for ONNX's own.
  std::string operation;
  std::vector<ValueId> inputs, outputs;
  std::vector<Attribute> attributes;

  const AttributeValue* attribute(std::string_view attribute_name) const {
    for (const Attribute& each : attributes) {
      if (each.name == attribute_name) return &each.value;
    }
    return nullptr;
  }
};

struct ProgramValue {
  std::string name;
  /// The numbers of a weight or constant; shared, so that programs can be copied.
  std::shared_ptr<const DenseTensor> constant;
};

/// What is fed anew for each run.
struct ProgramInput {
  ValueId value = -1;
  ElementType type = ElementType::f32;
  std::optional<Shape> shape;  ///< nullopt where the source does not say.
};

/// A stored tensor whose numbers the source has left out.
struct MissingWeight {
  ValueId value = -1;
  ElementType type = ElementType::f32;
  Shape shape;
};

/// A model with all that is needed to compute it: operations with their attributes, and weights.
/// A Graph is what the same model costs; it leaves out what costs nothing, and weights.
struct Program {
  std::string name;
  std::int64_t opset = 0;  ///< Version of ONNX's own operations.
  std::vector<ProgramValue> values;
  std::vector<ProgramNode> nodes;  ///< Producers before consumers.
  std::vector<ProgramInput> inputs;
  std::vector<ValueId> outputs;
  std::vector<MissingWeight> missing;
};

}  // namespace braid
