#include "braid/backend/pattern/pattern_rule.h"

#include <algorithm>
#include <set>

#include "braid/backend/pattern/operator_class.h"
#include "braid/backend/pattern/post_dominators.h"
#include "braid/base/index.h"

namespace braid {
namespace {

bool is_among(const NodeList& nodes, std::int32_t node) {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

bool is_leaf(const OpNode& node) {
  return node.kind == OpNode::Kind::input || node.kind == OpNode::Kind::constant;
}

class Generator {
 public:
  Generator(const OpGraph& graph, const PatternRule& rule)
      : graph_(graph),
        rule_(rule),
        readers_(readers_of(graph)),
        post_dominators_(post_dominators(graph)) {}

  std::vector<PatternMatch> all() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto node = static_cast<std::int32_t>(n);
      if (!is_leaf(graph_.nodes[n]) && rule_.takes(graph_, node)) grow(node);
    }
    std::vector<PatternMatch> matches;
    matches.reserve(found_.size());
    for (const NodeList& nodes : found_) matches.push_back({nodes, leaves_of(nodes)});
    std::stable_sort(matches.begin(), matches.end(), [](const auto& a, const auto& b) {
      return a.nodes.back() != b.nodes.back() ? a.nodes.back() < b.nodes.back()
                                              : a.nodes.size() < b.nodes.size();
    });
    return matches;
  }

 private:
  void grow(std::int32_t first) {
    NodeList nodes{first};
    keep(nodes);
    while (true) {
      const std::int32_t last = post_dominators_[at(nodes.back())];
      if (last < 0) return;
      const NodeList more = between(nodes.back(), last);
      if (nodes.size() + more.size() > rule_.most_nodes || !rule_.fuses(graph_, nodes, more)) {
        return;
      }
      // All of them lie behind the last one in the order of the graph.
      nodes.insert(nodes.end(), more.begin(), more.end());
      keep(nodes);
    }
  }

  /// What lies on the ways from `first` to its post-dominator, with that. It is read by nothing
  /// else: all ways on from there end in the post-dominator, too.
  NodeList between(std::int32_t first, std::int32_t last) const {
    std::set<std::int32_t> seen{last};
    std::vector<std::int32_t> open{first};
    while (!open.empty()) {
      const std::int32_t node = open.back();
      open.pop_back();
      for (const std::int32_t reader : readers_[at(node)]) {
        if (seen.insert(reader).second) open.push_back(reader);
      }
    }
    return {seen.begin(), seen.end()};
  }

  void keep(const NodeList& nodes) {
    if (!rule_.verifies || rule_.verifies(graph_, nodes)) found_.insert(nodes);
    if (!rule_.absorbs_movements) return;
    const NodeList more = with_movements(nodes);
    if (more.size() == nodes.size() || more.size() > rule_.most_nodes) return;
    if (!rule_.verifies || rule_.verifies(graph_, more)) found_.insert(more);
  }

  /// With the movements before it that nothing else reads.
  NodeList with_movements(const NodeList& nodes) const {
    NodeList all = nodes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const std::int32_t arg : graph_.nodes[at(all[i])].args) {
        if (arg < 0 || is_leaf(graph_.nodes[at(arg)])) continue;
        if (std::find(all.begin(), all.end(), arg) != all.end()) continue;
        const bool moves =
            graph_.nodes[at(arg)].kind == OpNode::Kind::operation &&
            operator_class(graph_.nodes[at(arg)].operation) == OperatorClass::injective;
        const bool is_only_here = readers_[at(arg)].size() == 1 && post_dominators_[at(arg)] >= 0;
        if (moves && is_only_here && rule_.takes(graph_, arg)) all.push_back(arg);
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  /// What is read of others, in the order of the nodes and their operands.
  std::vector<std::int32_t> leaves_of(const NodeList& nodes) const {
    std::vector<std::int32_t> leaves;
    for (const std::int32_t node : nodes) {
      for (const std::int32_t arg : graph_.nodes[at(node)].args) {
        if (arg >= 0 && !is_among(nodes, arg)) leaves.push_back(arg);
      }
    }
    return leaves;
  }

  const OpGraph& graph_;
  const PatternRule& rule_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<std::int32_t> post_dominators_;
  std::set<NodeList> found_;
};

OperatorClass class_at(const OpGraph& graph, std::int32_t node) {
  const OpNode& op = graph.nodes[at(node)];
  return op.kind == OpNode::Kind::operation ? operator_class(op.operation)
                                            : OperatorClass::injective;
}

}  // namespace

std::vector<PatternMatch> generated_matches(const OpGraph& graph, const PatternRule& rule) {
  return Generator(graph, rule).all();
}

PatternRule tvm_pattern_rule() {
  using enum OperatorClass;
  PatternRule rule;
  rule.takes = [](const OpGraph& graph, std::int32_t node) {
    return class_at(graph, node) != opaque;
  };
  rule.fuses = [](const OpGraph& graph, const NodeList& nodes, const NodeList& more) {
    const OperatorClass first = class_at(graph, nodes.front());
    if (first == reduction || first == opaque) return false;
    const OperatorClass most = first == fusable ? broadcast : injective;
    return std::all_of(more.begin(), more.end(),
                       [&](std::int32_t node) { return class_at(graph, node) <= most; });
  };
  return rule;
}

}  // namespace braid
