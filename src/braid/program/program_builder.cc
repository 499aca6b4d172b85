#include "braid/program/program_builder.h"

#include <memory>
#include <utility>

#include "braid/program/numbers.h"

namespace braid {

ProgramBuilder::ProgramBuilder(std::string name, std::int64_t opset) {
  program_.name = std::move(name);
  program_.opset = opset;
}

ValueId ProgramBuilder::input(Shape shape, ElementType type, const std::string& name) {
  const ValueId id = value(name);
  program_.inputs.push_back({id, type, std::move(shape)});
  return id;
}

ValueId ProgramBuilder::weight(Shape shape, const std::string& name) {
  const ValueId id = value(name);
  program_.missing.push_back({id, ElementType::f32, std::move(shape)});
  return id;
}

ValueId ProgramBuilder::constant(DenseTensor tensor) {
  const ValueId id = value("");
  program_.values.back().constant = std::make_shared<const DenseTensor>(std::move(tensor));
  return id;
}

ValueId ProgramBuilder::integers(std::span<const std::int64_t> numbers) {
  const std::vector<std::int64_t> list(numbers.begin(), numbers.end());
  return constant(tensor_of(ElementType::i64, {static_cast<std::int64_t>(list.size())}, list));
}

ValueId ProgramBuilder::real(double number) {
  return constant(tensor_of(ElementType::f32, {}, std::vector<double>{number}));
}

ValueId ProgramBuilder::node(const std::string& operation, std::vector<ValueId> inputs,
                             std::vector<Attribute> attributes, const std::string& name,
                             const std::string& domain) {
  const ValueId id = value("");
  program_.nodes.push_back({name.empty() ? operation + std::to_string(id) : name,
                            domain,
                            operation,
                            std::move(inputs),
                            {id},
                            std::move(attributes)});
  return id;
}

Program ProgramBuilder::finish(std::vector<ValueId> outputs) {
  program_.outputs = std::move(outputs);
  return std::move(program_);
}

ValueId ProgramBuilder::value(const std::string& name) {
  const auto id = static_cast<ValueId>(program_.values.size());
  program_.values.push_back({name.empty() ? "v" + std::to_string(id) : name, nullptr});
  return id;
}

}  // namespace braid
