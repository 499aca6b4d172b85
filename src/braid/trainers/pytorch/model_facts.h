#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "braid/frontend/graph_program.h"
#include "braid/graph/graph.h"

namespace braid {

/// What of a model its text is written from. `graph` and `model` outlive it.
struct ModelFacts {
  const Graph* graph = nullptr;
  const LayeredProgram* model = nullptr;
  std::vector<std::vector<NodeId>> nodes;  ///< [operator]
  std::vector<OperatorId> made_by;         ///< By value; -1: inputs, weights and constants.
  std::vector<bool> varies;                ///< By value: whether from sample to sample.
  std::map<ValueId, Shape> stored;         ///< Weights.
  /// Weights that some operations multiply by and others read turned, or as rows: they are written
  /// as they lie.
  std::set<ValueId> read_in_two_ways;
  std::vector<std::string> names;  ///< By value: identifiers of inputs and operators' results.
  std::vector<std::set<LayerId>> readers;  ///< By value: other layers than its own.
  std::set<ValueId> losses;                ///< Results that the loss is made of.

  const Program& program() const { return model->program; }
  bool is_parameter(ValueId id) const;
  LayerId made_in(ValueId id) const;  ///< -1: in none.
};

ModelFacts model_facts(const Graph& graph, const LayeredProgram& model);

/// A sample's shape in the written file, where maps [1 × channels × height × width] lack the 1.
Shape written_shape(const Shape& shape);

/// Numbers of an operand that is a constant. Throws Error, naming the node, where it is none.
std::vector<std::int64_t> constant_numbers(const Program& program, const ProgramNode& node,
                                           std::size_t operand);

/// A whole number or a list of them; `otherwise` where the node has none.
std::int64_t integer_of(const ProgramNode& node, std::string_view name, std::int64_t otherwise);
std::vector<std::int64_t> integers_of(const ProgramNode& node, std::string_view name);

}  // namespace braid
