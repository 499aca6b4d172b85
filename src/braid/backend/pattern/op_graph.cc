#include "braid/backend/pattern/op_graph.h"

#include <utility>

#include "braid/base/index.h"

namespace braid {

std::vector<std::vector<std::int32_t>> readers_of(const OpGraph& graph) {
  std::vector<std::vector<std::int32_t>> readers(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto reader = static_cast<std::int32_t>(n);
    for (const std::int32_t arg : graph.nodes[n].args) {
      if (arg < 0) continue;
      std::vector<std::int32_t>& known = readers[at(arg)];
      if (known.empty() || known.back() != reader) known.push_back(reader);
    }
  }
  return readers;
}

ProgramOpGraph op_graph_of(const Program& program) {
  ProgramOpGraph result;
  std::vector<std::int32_t> node_of(program.values.size(), -1);
  const auto add = [&](OpNode node, NodeId program_node, ValueId value) {
    if (value >= 0) node_of[at(value)] = static_cast<std::int32_t>(result.graph.nodes.size());
    result.graph.nodes.push_back(std::move(node));
    result.program_node.push_back(program_node);
    result.program_value.push_back(value);
  };
  for (const ProgramInput& input : program.inputs) {
    add({.kind = OpNode::Kind::input}, -1, input.value);
  }
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].constant == nullptr) continue;
    add({.kind = OpNode::Kind::constant}, -1, static_cast<ValueId>(v));
  }
  for (const MissingWeight& weight : program.missing) {
    add({.kind = OpNode::Kind::constant}, -1, weight.value);
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const ProgramNode& from = program.nodes[n];
    OpNode node{.kind = OpNode::Kind::operation,
                .operation = from.operation,
                .args = {},
                .index = 0,
                .attributes = from.attributes};
    for (const ValueId input : from.inputs) {
      node.args.push_back(input < 0 ? -1 : node_of[at(input)]);
    }
    const bool single = from.outputs.size() == 1;
    const auto id = static_cast<std::int32_t>(result.graph.nodes.size());
    add(std::move(node), static_cast<NodeId>(n), single ? from.outputs.front() : -1);
    for (std::size_t i = 0; i < from.outputs.size() && !single; ++i) {
      if (from.outputs[i] < 0) continue;
      add({.kind = OpNode::Kind::projection,
           .operation = {},
           .args = {id},
           .index = static_cast<std::int32_t>(i),
           .attributes = {}},
          -1, from.outputs[i]);
    }
  }
  for (const ValueId output : program.outputs) {
    result.graph.outputs.push_back(node_of[at(output)]);
  }
  return result;
}

}  // namespace braid
