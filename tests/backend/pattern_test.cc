#include "braid/backend/pattern/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::int32_t add_node(OpGraph& graph, OpNode::Kind kind, const std::string& operation = {},
                      std::vector<std::int32_t> args = {}) {
  graph.nodes.push_back({.kind = kind, .operation = operation, .args = std::move(args)});
  return static_cast<std::int32_t>(graph.nodes.size()) - 1;
}

std::int32_t op(OpGraph& graph, const std::string& operation, std::vector<std::int32_t> args) {
  return add_node(graph, OpNode::Kind::operation, operation, std::move(args));
}

/// relu(bias + conv(x, weight)).
struct ConvGraph {
  OpGraph graph;
  std::int32_t x = add_node(graph, OpNode::Kind::input);
  std::int32_t weight = add_node(graph, OpNode::Kind::constant);
  std::int32_t bias = add_node(graph, OpNode::Kind::constant);
  std::int32_t conv = op(graph, "Conv", {x, weight});
  std::int32_t sum = op(graph, "Add", {bias, conv});
  std::int32_t relu = op(graph, "Relu", {sum});
};

TEST(Patterns, MatchInOrderAndGiveLeavesInTheirs) {
  ConvGraph g;
  g.graph.outputs = {g.relu};
  const PatternMatcher matcher(g.graph);
  const Pattern conv = pattern("Conv", {any(), constant()});
  EXPECT_THAT(matcher.matches(conv, g.conv), SizeIs(1));
  EXPECT_THAT(matcher.matches(conv, g.sum), IsEmpty());
  EXPECT_THAT(matcher.matches(pattern("Conv", {constant(), any()}), g.conv), IsEmpty());
  EXPECT_THAT(matcher.matches(pattern("Add", {conv, any()}), g.sum), IsEmpty());
  const auto in_order = matcher.matches(pattern("Add", {constant(), conv}), g.sum);
  ASSERT_THAT(in_order, SizeIs(1));
  EXPECT_THAT(in_order[0].nodes, ElementsAre(g.conv, g.sum));
  EXPECT_THAT(in_order[0].leaves, ElementsAre(g.bias, g.x, g.weight));
}

TEST(Patterns, CommutativeOnesMatchBothWays) {
  ConvGraph g;
  g.graph.outputs = {g.relu};
  const PatternMatcher matcher(g.graph);
  const Pattern all =
      pattern("Relu", {commutative("Add", {pattern("Conv", {any(), any()}), constant()})});
  const auto found = matcher.matches(all, g.relu);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].nodes, ElementsAre(g.conv, g.sum, g.relu));
  EXPECT_THAT(found[0].leaves, ElementsAre(g.x, g.weight, g.bias));
  // Where both orders fit, both are found.
  EXPECT_THAT(matcher.matches(commutative("Add", {any(), any()}), g.sum), SizeIs(2));
}

TEST(Patterns, WhatIsReadOutsideIsNoInnerNode) {
  ConvGraph g;
  const Pattern all = commutative("Add", {pattern("Conv", {any(), any()}), any()});
  g.graph.outputs = {g.relu, g.conv};
  EXPECT_THAT(PatternMatcher(g.graph).matches(all, g.sum), IsEmpty());
  g.graph.outputs = {g.relu};
  EXPECT_THAT(PatternMatcher(g.graph).matches(all, g.sum), SizeIs(1));
  op(g.graph, "Sigmoid", {g.conv});
  EXPECT_THAT(PatternMatcher(g.graph).matches(all, g.sum), IsEmpty());
}

/// add(relu(x), tanh(relu(x))): relu and add alone would be read by tanh and read it.
TEST(Patterns, APathMayNotLeaveAndComeBack) {
  OpGraph graph;
  const auto x = add_node(graph, OpNode::Kind::input);
  const auto relu = op(graph, "Relu", {x});
  const auto tanh = op(graph, "Tanh", {relu});
  const auto add = op(graph, "Add", {relu, tanh});
  graph.outputs = {add};
  const PatternMatcher matcher(graph);
  EXPECT_THAT(matcher.matches(pattern("Add", {pattern("Relu", {any()}), any()}), add), IsEmpty());
  const Pattern whole =
      pattern("Add", {pattern("Relu", {any()}), pattern("Tanh", {pattern("Relu", {any()})})});
  const auto found = matcher.matches(whole, add);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].nodes, ElementsAre(relu, tanh, add));
}

TEST(Patterns, AttributesAndTuples) {
  OpGraph graph;
  const auto x = add_node(graph, OpNode::Kind::input);
  graph.nodes.push_back({.kind = OpNode::Kind::operation,
                         .operation = "Softmax",
                         .args = {x},
                         .index = 0,
                         .attributes = {{"axis", std::int64_t{1}}}});
  const auto both = add_node(graph, OpNode::Kind::tuple, {}, {x, 1});
  const auto concat = op(graph, "concatenate", {both});
  graph.nodes.push_back(
      {.kind = OpNode::Kind::projection, .operation = {}, .args = {concat}, .index = 1});
  const PatternMatcher matcher(graph);
  Pattern softmax = pattern("Softmax", {any()});
  softmax.attributes = {{"axis", std::int64_t{1}}};
  EXPECT_THAT(matcher.matches(softmax, 1), SizeIs(1));
  EXPECT_EQ(pattern_text(softmax), "Softmax{axis=1;}(*)");
  softmax.attributes = {{"axis", std::int64_t{2}}};
  EXPECT_THAT(matcher.matches(softmax, 1), IsEmpty());
  const Pattern joined = pattern("concatenate", {tuple_of({any(), any()})});
  EXPECT_THAT(matcher.matches(joined, concat), SizeIs(1));
  EXPECT_THAT(matcher.matches(projection(1, joined), 4), SizeIs(1));
  EXPECT_THAT(matcher.matches(projection(0, joined), 4), IsEmpty());
  EXPECT_EQ(pattern_text(projection(1, joined)), "output:1(concatenate(tuple(*, *)))");
}

TEST(Patterns, SeeAProgramsNodesValuesAndProjections) {
  Program program;
  for (const char* name : {"x", "w", "first", "second", "y"}) {
    program.values.push_back({name, nullptr});
  }
  program.inputs.push_back({0, ElementType::f32, Shape{4}});
  program.missing.push_back({1, ElementType::f32, {4}});
  program.outputs = {4};
  program.nodes.push_back({"split", "", "Split", {0}, {2, 3}, {}});
  program.nodes.push_back({"add", "", "Add", {3, 1}, {4}, {}});
  const ProgramOpGraph graph = op_graph_of(program);
  EXPECT_THAT(graph.program_node, ElementsAre(-1, -1, 0, -1, -1, 1));
  EXPECT_THAT(graph.program_value, ElementsAre(0, 1, -1, 2, 3, 4));
  EXPECT_EQ(graph.graph.nodes[1].kind, OpNode::Kind::constant);
  EXPECT_EQ(graph.graph.nodes[4].index, 1);
  EXPECT_THAT(graph.graph.nodes[5].args, ElementsAre(4, 1));
  EXPECT_THAT(graph.graph.outputs, ElementsAre(5));
}

}  // namespace
}  // namespace braid
