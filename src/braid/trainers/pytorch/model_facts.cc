#include "braid/trainers/pytorch/model_facts.h"

#include <algorithm>
#include <variant>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"
#include "braid/run/stage_sharding.h"
#include "braid/trainers/pytorch/python_text.h"

namespace braid {
namespace {

enum class Reading { as_it_lies, turned };

/// How a node's operand would be read by a module of PyTorch: Linear keeps its weight turned.
Reading reading_of(const ProgramNode& node) {
  return node.operation == "MatMul" ? Reading::turned : Reading::as_it_lies;
}

}  // namespace

bool ModelFacts::is_parameter(ValueId id) const {
  return std::binary_search(model->parameters.begin(), model->parameters.end(), id);
}

LayerId ModelFacts::made_in(ValueId id) const {
  const OperatorId op = made_by[at(id)];
  return op < 0 ? -1 : graph->operators[at(op)].layer;
}

ModelFacts model_facts(const Graph& graph, const LayeredProgram& model) {
  ModelFacts facts;
  facts.graph = &graph;
  facts.model = &model;
  facts.nodes.resize(graph.operators.size());
  facts.made_by.assign(model.program.values.size(), -1);
  facts.varies = sample_values(model.program);
  facts.readers.resize(model.program.values.size());
  for (const MissingWeight& weight : model.program.missing)
    facts.stored[weight.value] = weight.shape;
  std::map<ValueId, Reading> readings;
  for (std::size_t n = 0; n < model.program.nodes.size(); ++n) {
    const ProgramNode& node = model.program.nodes[n];
    const OperatorId op = model.operators[n];
    const LayerId layer = graph.operators[at(op)].layer;
    facts.nodes[at(op)].push_back(static_cast<NodeId>(n));
    for (const ValueId id : node.outputs) facts.made_by[at(id)] = op;
    for (const ValueId id : node.inputs) {
      if (id < 0) continue;
      if (facts.stored.contains(id)) {
        const auto [known, is_new] = readings.try_emplace(id, reading_of(node));
        if (!is_new && known->second != reading_of(node)) facts.read_in_two_ways.insert(id);
      } else if (facts.made_in(id) != layer) {
        facts.readers[at(id)].insert(layer);
      }
    }
  }
  // Other names of a stage's forward pass.
  PythonNames names({"F", "math", "n", "nn", "recomputed", "self", "torch"});
  facts.names.resize(model.program.values.size());
  for (const ProgramInput& input : model.program.inputs) {
    const std::string& name = model.program.values[at(input.value)].name;
    facts.names[at(input.value)] = names.unique(python_name(name));
  }
  for (std::size_t op = 0; op < facts.nodes.size(); ++op) {
    if (facts.nodes[op].empty()) continue;
    const ValueId result = model.program.nodes[at(facts.nodes[op].back())].outputs.front();
    facts.names[at(result)] = names.unique(python_name(graph.operators[op].name));
  }
  const std::vector<ValueId>& losses = model.logits.empty() ? model.program.outputs : model.logits;
  facts.losses = {losses.begin(), losses.end()};
  return facts;
}

Shape written_shape(const Shape& shape) {
  if (shape.size() == 4 && shape.front() == 1) return {shape.begin() + 1, shape.end()};
  return shape;
}

std::vector<std::int64_t> constant_numbers(const Program& program, const ProgramNode& node,
                                           std::size_t operand) {
  const bool has = operand < node.inputs.size() && node.inputs[operand] >= 0;
  const auto& constant = has ? program.values[at(node.inputs[operand])].constant : nullptr;
  if (!constant) {
    throw Error(program.name + ": " + node.name +
                    " takes numbers that are computed, which cannot be written for PyTorch",
                "take a model without it");
  }
  return numbers_of<std::int64_t>(*constant);
}

std::int64_t integer_of(const ProgramNode& node, std::string_view name, std::int64_t otherwise) {
  const AttributeValue* value = node.attribute(name);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return number == nullptr ? otherwise : *number;
}

std::vector<std::int64_t> integers_of(const ProgramNode& node, std::string_view name) {
  const AttributeValue* value = node.attribute(name);
  const auto* numbers = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  return numbers == nullptr ? std::vector<std::int64_t>{} : *numbers;
}

}  // namespace braid
