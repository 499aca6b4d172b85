#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/program/program.h"

namespace braid {

/// An expression of an operator graph, as patterns see it.
struct OpNode {
  enum class Kind : std::uint8_t {
    operation,
    input,       ///< Fed at run time.
    constant,    ///< A weight or number of the model.
    tuple,       ///< Several values together.
    projection,  ///< One output of an operation that has several, or one field of a tuple.
  };
  Kind kind = Kind::operation;
  std::string operation = {};           ///< Its name, of operations alone.
  std::vector<std::int32_t> args = {};  ///< Nodes before this one, in operand order; -1: left out.
  std::int32_t index = 0;               ///< Which output or field, of projections alone.
  std::vector<Attribute> attributes = {};
};

/// Operators and values with producers before consumers, so that a node's number is its place in a
/// topological order.
struct OpGraph {
  std::vector<OpNode> nodes;
  std::vector<std::int32_t> outputs;
};

/// Who reads each node, in ascending order and once each.
std::vector<std::vector<std::int32_t>> readers_of(const OpGraph& graph);

/// A program's operator graph: its inputs, constants and nodes, and a projection for each output
/// that is read of a node with several.
struct ProgramOpGraph {
  OpGraph graph;
  std::vector<NodeId> program_node;    ///< By node of the graph; -1 for what is none.
  std::vector<ValueId> program_value;  ///< The value that a node of the graph is.
};
ProgramOpGraph op_graph_of(const Program& program);

}  // namespace braid
