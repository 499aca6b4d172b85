#include "braid/frontend/onnx.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "frontend/onnx_model_builder.h"

namespace braid {
namespace {

using Dims = std::map<std::string, std::int64_t>;

Graph load(const OnnxModelBuilder& model, const Dims& dims = {}) {
  return graph_from_onnx_bytes(model.bytes(), "model.onnx", dims);
}

double matmul_flops(const Graph& graph) {
  double flops = 0;
  for (const Operator& op : graph.operators) flops += forward_work(graph, op).matmul_flops;
  return flops;
}

const Operator& find(const Graph& graph, const std::string& name) {
  for (const Operator& op : graph.operators) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << "no operator " << name;
  return graph.operators.front();
}

const Tensor& output_of(const Graph& graph, const std::string& name) {
  return graph.tensors[static_cast<std::size_t>(find(graph, name).outputs.front())];
}

std::vector<std::int64_t> shape(const Graph& graph, const std::string& name) {
  return output_of(graph, name).dims;
}

TEST(Onnx, ResidualBlockOfConvolutions) {
  OnnxModelBuilder model;
  model.input("x", {2, 3, 32, 32});
  model.weight("w1", {64, 3, 7, 7});
  model.node("Conv", {"x", "w1"}, {"c1"},
             {{"kernel_shape", std::vector<std::int64_t>{7, 7}},
              {"strides", std::vector<std::int64_t>{2, 2}},
              {"pads", std::vector<std::int64_t>{3, 3, 3, 3}}});
  for (const char* each : {"scale", "shift", "mean", "variance"}) model.weight(each, {64});
  model.node("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, {"b1"});
  model.node("Relu", {"b1"}, {"r1"});
  model.weight("w2", {64, 1, 3, 3});
  model.weight("bias2", {64});
  model.node("Conv", {"r1", "w2", "bias2"}, {"c2"},
             {{"group", 64}, {"auto_pad", std::string("SAME_UPPER")}});
  model.node("Add", {"c2", "r1"}, {"sum"});
  model.node("GlobalAveragePool", {"sum"}, {"pooled"});
  model.node("Flatten", {"pooled"}, {"flat"});
  model.weight("fc", {10, 64});
  model.weight("fc_bias", {10});
  model.node("Gemm", {"flat", "fc", "fc_bias"}, {"logits"}, {{"transB", 1}});
  model.output("logits");
  const Graph graph = load(model);

  EXPECT_EQ(shape(graph, "c1"), (std::vector<std::int64_t>{2, 64, 16, 16}));
  EXPECT_EQ(shape(graph, "c2"), (std::vector<std::int64_t>{2, 64, 16, 16}));
  EXPECT_EQ(shape(graph, "logits"), (std::vector<std::int64_t>{2, 10}));
  // The statistics of batch normalisation are not trained.
  EXPECT_EQ(parameter_count(graph), 64 * 3 * 49 + 2 * 64 + 64 * 9 + 64 + 64 * 10 + 10);
  const double first = 2.0 * 2 * 16 * 16 * 64 * 3 * 49;
  const double depthwise = 2.0 * 2 * 16 * 16 * 64 * 9;
  EXPECT_EQ(matmul_flops(graph), first + depthwise + 2.0 * 2 * 64 * 10);
  EXPECT_EQ(graph.samples, 2);
  EXPECT_EQ(std::get<Elementwise>(find(graph, "r1").kind).keeps, Elementwise::Keeps::mask);
}

/// A pre-norm transformer block as exporters write it, with a symbolic batch.
void add_block(OnnxModelBuilder& model, const std::string& p, const std::string& x,
               const std::string& out) {
  const auto n = [&](const std::string& name) { return p + name; };
  for (const char* each : {"gain", "shift"}) model.weight(n(each), {64});
  model.node("LayerNormalization", {x, n("gain"), n("shift")}, {n("norm")});
  for (const char* each : {"q", "k", "v"}) {
    const std::string e = each;
    model.weight(n(e + ".w"), {64, 64});
    model.node("MatMul", {n("norm"), n(e + ".w")}, {n(e)});
    model.node("Shape", {n(e)}, {n(e + ".shape")});
    model.node("Gather", {n(e + ".shape"), "zero"}, {n(e + ".batch")});
    model.node("Unsqueeze", {n(e + ".batch"), "axis0"}, {n(e + ".batch1")});
    model.node("Concat", {n(e + ".batch1"), "rest"}, {n(e + ".target")}, {{"axis", 0}});
    model.node("Reshape", {n(e), n(e + ".target")}, {n(e + ".split")});
    model.node("Transpose", {n(e + ".split")}, {n(e + ".heads")},
               {{"perm", e == "k" ? std::vector<std::int64_t>{0, 2, 3, 1}
                                  : std::vector<std::int64_t>{0, 2, 1, 3}}});
  }
  model.node("MatMul", {n("q.heads"), n("k.heads")}, {n("scores")});
  model.node("Div", {n("scores"), "root"}, {n("scaled")});
  model.node("Softmax", {n("scaled")}, {n("probabilities")}, {{"axis", -1}});
  model.node("MatMul", {n("probabilities"), n("v.heads")}, {n("context")});
  model.node("Transpose", {n("context")}, {n("context.t")},
             {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  model.node("Reshape", {n("context.t"), "merged"}, {n("context.m")});
  model.weight(n("o.w"), {64, 64});
  model.node("MatMul", {n("context.m"), n("o.w")}, {n("o")});
  model.node("Add", {n("o"), x}, {out});
}

TEST(Onnx, TransformerBlocksWithASymbolicBatch) {
  OnnxModelBuilder model;
  model.input("ids", {"batch", 16}, 7);
  model.weight("table", {1000, 64});
  model.weight("position", {16, 64});
  model.integer("zero", 0);
  model.integers("axis0", {0});
  model.integers("rest", {16, 4, 16});
  model.integers("merged", {0, 0, 64});
  model.scalar("root", 4);
  model.node("Gather", {"table", "ids"}, {"embedded"});
  model.node("Add", {"embedded", "position"}, {"x0"});
  add_block(model, "a.", "x0", "x1");
  add_block(model, "b.", "x1", "x2");
  model.node("Transpose", {"table"}, {"table.t"});
  model.node("MatMul", {"x2", "table.t"}, {"logits"});
  model.output("logits");
  const Graph graph = load(model, {{"batch", 8}});
  EXPECT_EQ(graph.samples, 8);
  EXPECT_EQ(shape(graph, "a.scores"), (std::vector<std::int64_t>{8, 4, 16, 16}));
  EXPECT_EQ(shape(graph, "logits"), (std::vector<std::int64_t>{8, 16, 1000}));
  // The output layer shares the embedding's table.
  EXPECT_EQ(parameter_count(graph), 1000 * 64 + 16 * 64 + 2 * (4 * 64 * 64 + 2 * 64));
  const double tokens = 8 * 16;
  const double block = 2 * tokens * 64 * 64 * 4 + 2 * (2.0 * 8 * 4 * 16 * 16 * 16);
  EXPECT_EQ(matmul_flops(graph), 2 * block + 2 * tokens * 64 * 1000);
  // Twice the batch, twice the work; the same parameters.
  const Graph doubled = load(model, {{"batch", 16}});
  EXPECT_EQ(matmul_flops(doubled), 2 * matmul_flops(graph));
  EXPECT_EQ(parameter_count(doubled), parameter_count(graph));
  // What is computed from shapes leaves no operators.
  for (const Operator& op : graph.operators) EXPECT_FALSE(op.name.ends_with(".target")) << op.name;
  EXPECT_THROW(load(model), Error);
  EXPECT_THROW(load(model, {{"batch", 8}, {"other", 1}}), Error);
}

}  // namespace
}  // namespace braid
