#include <algorithm>
#include <set>

#include "braid/backend/pattern/pattern.h"
#include "braid/base/index.h"

namespace braid {
namespace {

using Matches = std::vector<PatternMatch>;

bool has_attributes(const OpNode& node, const std::vector<Attribute>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Attribute& each) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const Attribute& own) {
      return own.name == each.name && own.value == each.value;
    });
  });
}

bool fits(const Pattern& pattern, const OpNode& node) {
  switch (pattern.kind) {
    case Pattern::Kind::any:
      return true;
    case Pattern::Kind::constant:
      return node.kind == OpNode::Kind::constant;
    case Pattern::Kind::tuple:
      return node.kind == OpNode::Kind::tuple;
    case Pattern::Kind::projection:
      return node.kind == OpNode::Kind::projection && node.index == pattern.index;
    case Pattern::Kind::operation:
      break;
  }
  return node.kind == OpNode::Kind::operation && node.operation == pattern.operation &&
         has_attributes(node, pattern.attributes);
}

void append(std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// All ways in which the pattern matches at `root`, whoever else reads its nodes.
Matches expand(const OpGraph& graph, const Pattern& pattern, std::int32_t root);

/// Matches of the pattern's operands against the node's, taken in `order`.
Matches expand_args(const OpGraph& graph, const Pattern& pattern,
                    const std::vector<std::int32_t>& args, bool swapped) {
  Matches partial{{}};
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i >= pattern.args.size()) {
      // Operands that the pattern does not name.
      for (PatternMatch& each : partial) {
        if (args[i] >= 0) each.leaves.push_back(args[i]);
      }
      continue;
    }
    const std::int32_t arg = args[swapped ? 1 - i : i];
    if (arg < 0) return {};
    Matches next;
    for (const PatternMatch& more : expand(graph, pattern.args[i], arg)) {
      for (const PatternMatch& before : partial) {
        next.push_back(before);
        append(next.back().nodes, more.nodes);
        append(next.back().leaves, more.leaves);
      }
    }
    partial = std::move(next);
  }
  return partial;
}

Matches expand(const OpGraph& graph, const Pattern& pattern, std::int32_t root) {
  const OpNode& node = graph.nodes[at(root)];
  if (!fits(pattern, node)) return {};
  if (pattern.kind == Pattern::Kind::any || pattern.kind == Pattern::Kind::constant) {
    return {{.nodes = {}, .leaves = {root}}};
  }
  const std::size_t count = node.args.size();
  if (count < pattern.args.size() || (count > pattern.args.size() && !pattern.takes_more))
    return {};
  Matches matches = expand_args(graph, pattern, node.args, false);
  if (pattern.commutes && count == 2) {
    for (PatternMatch& each : expand_args(graph, pattern, node.args, true)) {
      matches.push_back(std::move(each));
    }
  }
  for (PatternMatch& each : matches) {
    // A node that is reached on two ways is computed once.
    std::vector<std::int32_t> nodes;
    for (const std::int32_t inner : each.nodes) {
      if (std::find(nodes.begin(), nodes.end(), inner) == nodes.end()) nodes.push_back(inner);
    }
    nodes.push_back(root);
    each.nodes = std::move(nodes);
  }
  return matches;
}

bool contains(const std::vector<std::int32_t>& nodes, std::int32_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

PatternMatcher::PatternMatcher(const OpGraph& graph)
    : graph_(&graph), readers_(readers_of(graph)), is_output_(graph.nodes.size(), false) {
  for (const std::int32_t output : graph.outputs) is_output_[at(output)] = true;
}

bool reads_itself(const PatternMatch& match) {
  return std::any_of(match.leaves.begin(), match.leaves.end(),
                     [&](std::int32_t leaf) { return contains(match.nodes, leaf); });
}

std::vector<PatternMatch> PatternMatcher::matches(const Pattern& pattern, std::int32_t root) const {
  Matches kept;
  for (PatternMatch& each : expand(*graph_, pattern, root)) {
    if (each.nodes.empty() || !is_single_exit(each) || !is_convex(each)) continue;
    if (std::find(kept.begin(), kept.end(), each) == kept.end()) kept.push_back(std::move(each));
  }
  return kept;
}

bool PatternMatcher::is_single_exit(const PatternMatch& match) const {
  return std::all_of(match.nodes.begin(), match.nodes.end() - 1, [&](std::int32_t node) {
    const auto& readers = readers_[at(node)];
    return !is_output_[at(node)] &&
           std::all_of(readers.begin(), readers.end(),
                       [&](std::int32_t reader) { return contains(match.nodes, reader); });
  });
}

bool PatternMatcher::is_convex(const PatternMatch& match) const {
  if (match.nodes.size() < 2) return true;
  // From each operand outside backwards: none may lead to a matched node. Nodes before the first
  // matched one cannot.
  const std::int32_t first = *std::min_element(match.nodes.begin(), match.nodes.end());
  std::set<std::int32_t> seen;
  std::vector<std::int32_t> open;
  for (const std::int32_t node : match.nodes) {
    for (const std::int32_t arg : graph_->nodes[at(node)].args) {
      if (arg > first && !contains(match.nodes, arg) && seen.insert(arg).second)
        open.push_back(arg);
    }
  }
  while (!open.empty()) {
    const std::int32_t node = open.back();
    open.pop_back();
    for (const std::int32_t arg : graph_->nodes[at(node)].args) {
      if (contains(match.nodes, arg)) return false;
      if (arg > first && seen.insert(arg).second) open.push_back(arg);
    }
  }
  return true;
}

}  // namespace braid
