#pragma once

#include <string>
#include <vector>

#include "braid/program/program.h"
#include "braid/program/random_tensor.h"

namespace braid {

/// A program that is built node by node.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::int64_t opset = 15) {
    program_.name = "test";
    program_.opset = opset;
  }
  ValueId input(const Shape& shape) {
    const ValueId id = value();
    program_.inputs.push_back({id, ElementType::f32, shape});
    return id;
  }
  ValueId weight(const Shape& shape) {
    const ValueId id = value();
    program_.missing.push_back({id, ElementType::f32, shape});
    return id;
  }
  ValueId node(const std::string& operation, const std::vector<ValueId>& inputs,
               const std::vector<Attribute>& attributes = {}) {
    const ValueId id = value();
    program_.nodes.push_back(
        {operation + std::to_string(id), "", operation, inputs, {id}, attributes});
    return id;
  }
  Program with_output(ValueId output) {
    program_.outputs = {output};
    fill_missing_weights(program_, 3);
    return program_;
  }

 private:
  ValueId value() {
    program_.values.push_back({"v" + std::to_string(program_.values.size()), nullptr});
    return static_cast<ValueId>(program_.values.size()) - 1;
  }
  Program program_;
};

}  // namespace braid
