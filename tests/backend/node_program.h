#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/backend/executor.h"
#include "braid/program/numbers.h"
#include "braid/program/program.h"

namespace braid {

inline DenseTensor reals(Shape shape, const std::vector<double>& numbers,
                         ElementType type = ElementType::f32) {
  return tensor_of(type, std::move(shape), numbers);
}

inline DenseTensor wholes(Shape shape, const std::vector<std::int64_t>& numbers,
                          ElementType type = ElementType::i64) {
  return tensor_of(type, std::move(shape), numbers);
}

/// A program of one node that reads `inputs`; operands without a type of their own are left out.
struct NodeProgram {
  std::string operation;
  std::string domain = {};
  std::vector<Attribute> attributes = {};
  std::int64_t opset = 21;
  int outputs = 1;

  Program program(const std::vector<DenseTensor>& inputs) const {
    Program result;
    result.name = "test";
    result.opset = opset;
    ProgramNode node{.name = "it",
                     .domain = domain,
                     .operation = operation,
                     .inputs = {},
                     .outputs = {},
                     .attributes = attributes};
    for (const DenseTensor& each : inputs) {
      const auto id = static_cast<ValueId>(result.values.size());
      const bool left_out = each.data.empty();
      result.values.push_back({"x" + std::to_string(id), nullptr});
      result.inputs.push_back({id, each.type, each.shape});
      node.inputs.push_back(left_out ? -1 : id);
    }
    for (int i = 0; i < outputs; ++i) {
      const auto id = static_cast<ValueId>(result.values.size());
      result.values.push_back({"y" + std::to_string(i), nullptr});
      node.outputs.push_back(id);
      result.outputs.push_back(id);
    }
    result.nodes.push_back(std::move(node));
    return result;
  }

  std::vector<DenseTensor> compute(const std::vector<DenseTensor>& inputs) const {
    return run(program(inputs), inputs);
  }
};

/// An operand that a node leaves out: of no elements.
inline DenseTensor absent() { return DenseTensor(ElementType::f32, {0}); }

}  // namespace braid
