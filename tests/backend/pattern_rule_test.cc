#include "braid/backend/pattern/pattern_rule.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/pattern/operator_class.h"
#include "braid/backend/pattern/post_dominators.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class Graph {
 public:
  std::int32_t input() { return add(OpNode::Kind::input, {}, {}); }
  std::int32_t constant() { return add(OpNode::Kind::constant, {}, {}); }
  std::int32_t op(const std::string& operation, std::vector<std::int32_t> args) {
    return add(OpNode::Kind::operation, operation, std::move(args));
  }
  OpGraph with_outputs(std::vector<std::int32_t> outputs) {
    graph_.outputs = std::move(outputs);
    return graph_;
  }

 private:
  std::int32_t add(OpNode::Kind kind, const std::string& operation,
                   std::vector<std::int32_t> args) {
    graph_.nodes.push_back({.kind = kind, .operation = operation, .args = std::move(args)});
    return static_cast<std::int32_t>(graph_.nodes.size()) - 1;
  }

  OpGraph graph_;
};

std::vector<NodeList> nodes_of(const std::vector<PatternMatch>& matches) {
  std::vector<NodeList> all;
  for (const PatternMatch& each : matches) all.push_back(each.nodes);
  return all;
}

TEST(PatternRule, AConvolutionWithSumAndReluGivesSixPatterns) {
  Graph g;
  const auto x = g.input(), w = g.constant(), y = g.input();
  const auto conv = g.op("Conv", {x, w}), sum = g.op("Add", {conv, y}), relu = g.op("Relu", {sum});
  const auto found = generated_matches(g.with_outputs({relu}), tvm_pattern_rule());
  EXPECT_THAT(nodes_of(found),
              ElementsAre(NodeList{conv}, NodeList{sum}, NodeList{conv, sum}, NodeList{relu},
                          NodeList{sum, relu}, NodeList{conv, sum, relu}));
  EXPECT_THAT(found.back().leaves, ElementsAre(x, w, y));
}

TEST(PatternRule, ReductionsAndSecondConvolutionsEndAKernel) {
  Graph g;
  const auto x = g.input(), w = g.constant();
  const auto exp = g.op("Exp", {x}), sum = g.op("ReduceSum", {exp});
  const auto first = g.op("Conv", {sum, w}), turned = g.op("Transpose", {first});
  EXPECT_THAT(nodes_of(generated_matches(g.with_outputs({turned}), tvm_pattern_rule())),
              ElementsAre(NodeList{exp}, NodeList{sum}, NodeList{first}, NodeList{turned}));
}

TEST(PatternRule, WaysThatPartAreTakenWhole) {
  // x · sigmoid(x), whose two ways meet in the product; and what is read twice outside is no end.
  Graph g;
  const auto x = g.input(), c = g.constant();
  const auto shift = g.op("Add", {x, c}), sigmoid = g.op("Sigmoid", {shift});
  const auto product = g.op("Mul", {shift, sigmoid});
  EXPECT_THAT(nodes_of(generated_matches(g.with_outputs({product}), tvm_pattern_rule())),
              UnorderedElementsAre(NodeList{shift}, NodeList{sigmoid}, NodeList{product},
                                   NodeList{sigmoid, product}, NodeList{shift, sigmoid, product}));
  EXPECT_THAT(nodes_of(generated_matches(g.with_outputs({sigmoid, product}), tvm_pattern_rule())),
              UnorderedElementsAre(NodeList{shift}, NodeList{sigmoid}, NodeList{product}));
}

TEST(PatternRule, MovementsThatNothingElseReadsAreAbsorbed) {
  Graph g;
  const auto x = g.input(), y = g.input();
  const auto a = g.op("Transpose", {x}), b = g.op("Transpose", {y});
  const auto product = g.op("MatMul", {a, b}), other = g.op("Relu", {a});
  PatternRule rule = tvm_pattern_rule();
  rule.absorbs_movements = true;
  EXPECT_THAT(nodes_of(generated_matches(g.with_outputs({product, other}), rule)),
              UnorderedElementsAre(NodeList{a}, NodeList{b}, NodeList{product},
                                   NodeList{b, product}, NodeList{other}));
}

TEST(PatternRule, TheVerifierAndTheSizeHaveTheLastWord) {
  Graph g;
  std::int32_t x = g.input();
  for (int i = 0; i < 4; ++i) x = g.op("Relu", {x});
  const OpGraph graph = g.with_outputs({x});
  PatternRule rule = tvm_pattern_rule();
  rule.verifies = [](const OpGraph&, const NodeList& nodes) { return nodes.size() != 2; };
  EXPECT_EQ(generated_matches(graph, rule).size(), 4U + 2U + 1U);
  rule.most_nodes = 3;
  EXPECT_EQ(generated_matches(graph, rule).size(), 4U + 2U);
}

/// Whether every way from `node` to an output passes `through`: by search, for random graphs.
bool passes(const OpGraph& graph, const std::vector<std::vector<std::int32_t>>& readers,
            std::int32_t node, std::int32_t through) {
  if (node == through) return true;
  const bool is_output =
      std::find(graph.outputs.begin(), graph.outputs.end(), node) != graph.outputs.end();
  const auto& next = readers[static_cast<std::size_t>(node)];
  return !is_output && !next.empty() && std::all_of(next.begin(), next.end(), [&](auto reader) {
    return passes(graph, readers, reader, through);
  });
}

TEST(PostDominators, AreThoseOfASearchOnRandomGraphs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Graph g;
    std::vector<std::int32_t> nodes{g.input()};
    for (int n = 0; n < 9; ++n) {
      std::vector<std::int32_t> args;
      for (std::uint32_t i = 0; i <= random() % 2; ++i)
        args.push_back(nodes[random() % nodes.size()]);
      nodes.push_back(g.op("Add", args));
    }
    std::vector<std::int32_t> outputs{nodes.back()};
    if (trial % 3 == 0) outputs.push_back(nodes[random() % nodes.size()]);
    const OpGraph graph = g.with_outputs(outputs);
    const auto readers = readers_of(graph);
    const auto found = post_dominators(graph);
    for (const std::int32_t node : nodes) {
      std::int32_t first = -1;
      for (const std::int32_t later : nodes) {
        if (first < 0 && later > node && passes(graph, readers, node, later)) first = later;
      }
      EXPECT_EQ(found[static_cast<std::size_t>(node)], first) << trial << " " << node;
    }
  }
}

}  // namespace
}  // namespace braid
