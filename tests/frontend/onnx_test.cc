#include "braid/frontend/onnx.h"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "braid/base/error.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "frontend/onnx_model_builder.h"

namespace braid {
namespace {

using Dims = std::map<std::string, std::int64_t>;

Graph load(const OnnxModelBuilder& model, const Dims& dims = {}) {
  return graph_from_onnx_bytes(model.bytes(), "model.onnx", dims, OnnxOperators::as_written);
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

using List = std::vector<std::int64_t>;

/// Writes networks of convolutions as PyTorch exports them, batch normalisation apart.
class ConvNet {
 public:
  explicit ConvNet(OnnxModelBuilder& model) : model_(model) {}

  std::string conv(const std::string& x, std::int64_t in, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride) {
    const std::string n = "n" + std::to_string(count_++);
    model_.weight(n + ".w", {out, in, kernel, kernel});
    const std::int64_t pad = kernel / 2;
    model_.node("Conv", {x, n + ".w"}, {n + ".conv"},
                {{"pads", List{pad, pad, pad, pad}}, {"strides", List{stride, stride}}});
    for (const char* each : {".scale", ".shift", ".mean", ".variance"})
      model_.weight(n + each, {out});
    model_.node("BatchNormalization",
                {n + ".conv", n + ".scale", n + ".shift", n + ".mean", n + ".variance"}, {n});
    return n;
  }

  std::string relu(const std::string& x) {
    model_.node("Relu", {x}, {x + ".relu"});
    return x + ".relu";
  }

  std::string bottleneck(const std::string& x, std::int64_t in, std::int64_t width,
                         std::int64_t stride) {
    std::string y = relu(conv(x, in, width, 1, 1));
    y = relu(conv(y, width, width, 3, stride));
    y = conv(y, width, 4 * width, 1, 1);
    const std::string skip = in == 4 * width ? x : conv(x, in, 4 * width, 1, stride);
    model_.node("Add", {y, skip}, {y + ".sum"});
    return relu(y + ".sum");
  }

 private:
  OnnxModelBuilder& model_;
  int count_ = 0;
};

TEST(Onnx, ResNet50HasItsPublishedSizeAndWork) {
  OnnxModelBuilder model;
  model.input("image", {"N", 3, 224, 224});
  ConvNet net(model);
  std::string x = net.relu(net.conv("image", 3, 64, 7, 2));
  model.node("MaxPool", {x}, {"pooled"},
             {{"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}});
  x = "pooled";
  std::int64_t in = 64;
  const std::vector<std::pair<std::int64_t, int>> stages{{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  for (const auto& [width, blocks] : stages) {
    for (int block = 0; block < blocks; ++block) {
      x = net.bottleneck(x, in, width, block == 0 && width > 64 ? 2 : 1);
      in = 4 * width;
    }
  }
  model.node("GlobalAveragePool", {x}, {"mean"});
  model.node("Flatten", {"mean"}, {"features"});
  model.weight("fc.w", {1000, 2048});
  model.weight("fc.b", {1000});
  model.node("Gemm", {"features", "fc.w", "fc.b"}, {"logits"}, {{"transB", 1}});
  model.output("logits");

  const Graph graph = load(model, {{"N", 2}});
  // torchvision, resnet50: 25557032 parameters, 4.09 G multiply-adds per image.
  EXPECT_EQ(parameter_count(graph), 25557032);
  EXPECT_NEAR(matmul_flops(graph) / 2 / 2, 4.09e9, 0.005e9);
  EXPECT_EQ(graph.samples, 2);
  EXPECT_EQ(shape(graph, "logits"), (List{2, 1000}));
  // Sixteen blocks between the stem and the head, alike within a stage but for the first.
  EXPECT_GE(graph.layers.size(), 17U);
  EXPECT_LE(layer_kind_count(graph), 14);
}

/// GPT-2 as PyTorch exports it: its linear layers as Gemm of flattened tokens, its GELU written
/// out, its causal mask a constant.
class Gpt2 {
 public:
  explicit Gpt2(OnnxModelBuilder& model) : model_(model) {}

  void build(int blocks) {
    model_.input("ids", {"batch", 1024}, 7);
    model_.weight("wte", {50257, 768});
    model_.weight("wpe", {1024, 768});
    model_.weight("mask", {1, 1, 1024, 1024}, 9);
    model_.scalar("eight", 8);
    model_.scalar("lowest", -10000);
    model_.scalar("half", 0.5F);
    model_.scalar("three", 3);
    model_.scalar("cubic", 0.044715F);
    model_.scalar("root", 0.797884F);
    model_.scalar("one", 1);
    model_.integer("start", 0);
    model_.integer("limit", 1024);
    model_.integer("step", 1);
    model_.integers("tokens", {-1, 768});
    model_.integers("inner_tokens", {-1, 3072});
    model_.integers("rows", {-1, 1024, 768});
    model_.integers("qkv_rows", {-1, 1024, 2304});
    model_.integers("inner_rows", {-1, 1024, 3072});
    model_.integers("heads", {0, 0, 12, 64});
    model_.node("Range", {"start", "limit", "step"}, {"positions"});
    model_.node("Gather", {"wte", "ids"}, {"embedded"});
    model_.node("Gather", {"wpe", "positions"}, {"placed"});
    model_.node("Add", {"embedded", "placed"}, {"x"});
    std::string x = "x";
    for (int i = 0; i < blocks; ++i) x = block("h" + std::to_string(i) + ".", x);
    x = norm("ln_f", x);
    model_.node("Transpose", {"wte"}, {"wte.t"});
    model_.node("MatMul", {x, "wte.t"}, {"logits"});
    model_.output("logits");
  }

 private:
  std::string unary(const std::string& operation, const std::vector<std::string>& inputs,
                    const std::string& out) {
    model_.node(operation, inputs, {out});
    return out;
  }

  std::string norm(const std::string& name, const std::string& x) {
    model_.weight(name + ".w", {768});
    model_.weight(name + ".b", {768});
    return unary("LayerNormalization", {x, name + ".w", name + ".b"}, name);
  }

  std::string linear(const std::string& name, const std::string& x, std::int64_t in,
                     std::int64_t out, const std::string& flat, const std::string& rows) {
    model_.weight(name + ".w", {in, out});
    model_.weight(name + ".b", {out});
    unary("Reshape", {x, flat}, name + ".in");
    unary("Gemm", {name + ".in", name + ".w", name + ".b"}, name + ".gemm");
    return unary("Reshape", {name + ".gemm", rows}, name);
  }

  std::string block(const std::string& p, const std::string& x) {
    const std::string qkv = linear(p + "qkv", norm(p + "ln1", x), 768, 2304, "tokens", "qkv_rows");
    model_.node("Split", {qkv}, {p + "q", p + "k", p + "v"}, {{"axis", 2}});
    for (const char* each : {"q", "k", "v"}) {
      unary("Reshape", {p + each, "heads"}, p + each + ".s");
      model_.node("Transpose", {p + each + ".s"}, {p + each + ".t"},
                  {{"perm", *each == 'k' ? List{0, 2, 3, 1} : List{0, 2, 1, 3}}});
    }
    unary("MatMul", {p + "q.t", p + "k.t"}, p + "scores");
    unary("Div", {p + "scores", "eight"}, p + "scaled");
    unary("Where", {"mask", p + "scaled", "lowest"}, p + "masked");
    unary("Softmax", {p + "masked"}, p + "probabilities");
    unary("MatMul", {p + "probabilities", p + "v.t"}, p + "context");
    model_.node("Transpose", {p + "context"}, {p + "context.t"}, {{"perm", List{0, 2, 1, 3}}});
    const std::string out = linear(p + "proj", p + "context.t", 768, 768, "tokens", "rows");
    const std::string y = unary("Add", {x, out}, p + "add1");
    const std::string up = linear(p + "fc", norm(p + "ln2", y), 768, 3072, "tokens", "inner_rows");
    unary("Pow", {up, "three"}, p + "cube");
    unary("Mul", {p + "cube", "cubic"}, p + "term");
    unary("Add", {up, p + "term"}, p + "sum");
    unary("Mul", {p + "sum", "root"}, p + "argument");
    unary("Tanh", {p + "argument"}, p + "tanh");
    unary("Add", {p + "tanh", "one"}, p + "shifted");
    unary("Mul", {up, "half"}, p + "halved");
    unary("Mul", {p + "halved", p + "shifted"}, p + "gelu");
    return unary("Add", {y, linear(p + "down", p + "gelu", 3072, 768, "inner_tokens", "rows")},
                 p + "add2");
  }

  OnnxModelBuilder& model_;
};

TEST(Onnx, Gpt2HasItsPublishedSizeAndWork) {
  OnnxModelBuilder model;
  Gpt2(model).build(12);
  const Graph graph = load(model, {{"batch", 4}});
  EXPECT_EQ(parameter_count(graph), 124439808);
  const double tokens = 4 * 1024;
  const double attention = 2 * 2.0 * 4 * 12 * 1024 * 1024 * 64;
  EXPECT_EQ(matmul_flops(graph),
            2 * tokens * (12 * (12.0 * 768 * 768) + 768 * 50257) + 12 * attention);
  EXPECT_EQ(graph.samples, 4);
  // Twelve equal blocks.
  EXPECT_LE(layer_kind_count(graph), 8);
  EXPECT_GE(graph.layers.size(), 14U);
}

TEST(Onnx, Gpt2IsPutTogetherAgain) {
  OnnxModelBuilder model;
  Gpt2(model).build(12);
  const Graph written = load(model, {{"batch", 4}});
  const Graph fused = graph_from_onnx_bytes(model.bytes(), "model.onnx", {{"batch", 4}});
  EXPECT_EQ(parameter_count(fused), parameter_count(written));
  EXPECT_EQ(matmul_flops(fused), matmul_flops(written));
  int attentions = 0, pointwise = 0, softmaxes = 0;
  for (const Operator& op : fused.operators) {
    if (const auto* attention = std::get_if<Attention>(&op.kind)) {
      ++attentions;
      EXPECT_EQ(*attention, (Attention{.samples = 4,
                                       .heads = 12,
                                       .kv_heads = 12,
                                       .q_len = 1024,
                                       .kv_len = 1024,
                                       .qk_dim = 64,
                                       .v_dim = 64}));
    }
    pointwise += std::holds_alternative<Elementwise>(op.kind) ? 1 : 0;
    softmaxes += std::holds_alternative<Softmax>(op.kind) ? 1 : 0;
  }
  EXPECT_EQ(attentions, 12);
  EXPECT_EQ(softmaxes, 0);
  // A GELU and two sums in each block, and the sum with the positions.
  EXPECT_EQ(pointwise, 12 * 3 + 1);
}

TEST(Onnx, RecurrentCells) {
  for (const auto& [operation, gates] :
       std::map<std::string, int>{{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    for (const int directions : {1, 2}) {
      OnnxModelBuilder model;
      model.input("x", {5, 3, 10});
      model.weight("w", {directions, gates * 20, 10});
      model.weight("r", {directions, gates * 20, 20});
      model.weight("b", {directions, 2 * gates * 20});
      model.node(operation, {"x", "w", "r", "b"}, {"y", "last"},
                 {{"hidden_size", 20},
                  {"direction", std::string(directions == 2 ? "bidirectional" : "forward")}});
      model.output("y");
      const Graph graph = load(model);
      EXPECT_EQ(parameter_count(graph), directions * gates * 20 * (10 + 20 + 2)) << operation;
      EXPECT_EQ(matmul_flops(graph), 2.0 * directions * 5 * 3 * gates * 20 * (10 + 20));
      EXPECT_EQ(shape(graph, "y"), (List{5, directions, 3, 20}));
    }
  }
}

TEST(Onnx, TransposedConvolution) {
  OnnxModelBuilder model;
  model.input("x", {1, 8, 5, 5});
  model.weight("w", {8, 4, 3, 3});
  model.node("ConvTranspose", {"x", "w"}, {"y"},
             {{"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}, {"output_padding", List{1, 1}}});
  const Graph graph = load(model);
  EXPECT_EQ(shape(graph, "y"), (List{1, 4, 10, 10}));
  // Each input position meets each kernel position once.
  EXPECT_EQ(matmul_flops(graph), 2.0 * 5 * 5 * 8 * 4 * 9);
}

TEST(Onnx, EinsumIsAProductOfItsLetters) {
  OnnxModelBuilder model;
  model.input("q", {2, 6, 4, 8});
  model.input("k", {2, 7, 4, 8});
  model.weight("w", {4, 8, 5});
  model.node("Einsum", {"q", "k"}, {"scores"}, {{"equation", std::string("bqhd,bkhd->bhqk")}});
  model.node("Einsum", {"q", "w"}, {"out"}, {{"equation", std::string("bqhd,hde->bqe")}});
  const Graph graph = load(model);
  EXPECT_EQ(shape(graph, "scores"), (List{2, 4, 6, 7}));
  EXPECT_EQ(std::get<MatMul>(find(graph, "scores").kind),
            (MatMul{.batch = 8, .m = 6, .n = 7, .k = 8, .weight = false, .bias = false}));
  EXPECT_EQ(std::get<MatMul>(find(graph, "out").kind),
            (MatMul{.batch = 1, .m = 12, .n = 5, .k = 32, .weight = true, .bias = false}));
}

TEST(Onnx, EinsumWithDots) {
  const auto result = [](const std::string& equation, const OnnxModelBuilder::Dims& a,
                         const OnnxModelBuilder::Dims& b) {
    OnnxModelBuilder model;
    model.input("a", a);
    model.input("b", b);
    model.node("Einsum", {"a", "b"}, {"y"}, {{"equation", equation}});
    return shape(load(model), "y");
  };
  EXPECT_EQ(result("...ij,...jk->...ik", {2, 3, 4, 5}, {2, 3, 5, 6}), (List{2, 3, 4, 6}));
  EXPECT_EQ(result("...ij,jk", {2, 3, 4, 5}, {5, 6}), (List{2, 3, 4, 6}));
  EXPECT_EQ(result("...i,...i->...", {2, 1, 5}, {7, 5}), (List{2, 7}));
  EXPECT_THROW(result("...ij,jk->...ik", {5}, {5, 6}), Error);
  EXPECT_THROW(result("ij,jk->il", {4, 5}, {5, 6}), Error);
  EXPECT_THROW(result("ij,jk->ik", {4, 5}, {7, 6}), Error);
}

TEST(Onnx, FusedAttention) {
  const Attention expected{.samples = 2,
                           .heads = 8,
                           .kv_heads = 2,
                           .q_len = 5,
                           .kv_len = 16,
                           .qk_dim = 64,
                           .v_dim = 64,
                           .causal = true};
  {
    OnnxModelBuilder model(23);
    model.input("q", {2, 8, 5, 64});
    model.input("kv", {2, 2, 11, 64});
    model.input("past", {2, 2, 5, 64});
    model.node("Attention", {"q", "kv", "kv", "", "past", "past"}, {"y", "key", "value"},
               {{"is_causal", 1}});
    const Graph graph = load(model);
    EXPECT_EQ(std::get<Attention>(graph.operators.front().kind), expected);
    EXPECT_EQ(shape(graph, "y"), (List{2, 8, 5, 64}));
  }
  {
    OnnxModelBuilder model;
    model.input("q", {2, 5, 8 * 64});
    model.input("kv", {2, 11, 2 * 64});
    model.input("past", {2, 2, 5, 64});
    model.node("GroupQueryAttention", {"q", "kv", "kv", "past", "past"}, {"y"},
               {{"num_heads", 8}, {"kv_num_heads", 2}});
    model.model().mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
    const Graph graph = load(model);
    EXPECT_EQ(std::get<Attention>(graph.operators.front().kind), expected);
    EXPECT_EQ(shape(graph, "y"), (List{2, 5, 8 * 64}));
  }
}

TEST(Onnx, ProductsOfWeightsOnTheLeftAreTurned) {
  OnnxModelBuilder model;
  model.input("x", {3, 5});
  model.weight("w", {4, 3});
  model.node("MatMul", {"w", "x"}, {"y"});
  const Graph graph = load(model);
  EXPECT_EQ(shape(graph, "y"), (List{4, 5}));
  EXPECT_EQ(std::get<MatMul>(find(graph, "y").kind), (MatMul{1, 5, 4, 3, true, false}));
}

TEST(Onnx, PaddingComputedFromShapesLeavesOnlyItself) {
  // What PyTorch writes for a padding whose amount is a list: turned over and transposed.
  OnnxModelBuilder model;
  model.input("x", {1, 3, 8, 8});
  model.integers("amounts", {1, 2, 3, 4, 0, 0, 0, 0});
  model.integers("pairs", {-1, 2});
  model.integers("minus_one", {-1});
  model.integers("lowest", {-9223372036854775807});
  model.integers("zero", {0});
  model.node("Reshape", {"amounts", "pairs"}, {"a"});
  model.node("Slice", {"a", "minus_one", "lowest", "zero", "minus_one"}, {"b"});
  model.node("Transpose", {"b"}, {"c"}, {{"perm", List{1, 0}}});
  model.node("Reshape", {"c", "minus_one"}, {"d"});
  model.node("Cast", {"d"}, {"pads"}, {{"to", 7}});
  model.node("Pad", {"x", "pads"}, {"y"});
  const Graph graph = load(model);
  ASSERT_EQ(graph.operators.size(), 1U);
  EXPECT_EQ(shape(graph, "y"), (List{1, 3, 8 + 3 + 4, 8 + 1 + 2}));
  EXPECT_EQ(parameter_count(graph), 0);
}

TEST(Onnx, WhichInitializersAreParameters) {
  OnnxModelBuilder model;
  model.input("x", {2, 8});
  model.weight("w", {8, 8});
  model.weight("unused", {100, 100});
  model.weight("mask", {2, 8}, 9);
  model.scalar("scale", 2);
  model.weight("quantized", {8, 8}, 3);
  model.weight("steps", {8});
  model.node("MatMul", {"x", "w"}, {"a"});
  model.node("Mul", {"a", "scale"}, {"b"});
  model.node("Where", {"mask", "b", "scale"}, {"c"});
  model.node("Reshape", {"w", "flat"}, {"w2"});
  model.integers("flat", {64});
  model.integers("square", {8, 8});
  model.node("Reshape", {"w2", "square"}, {"w3"});
  model.node("MatMul", {"c", "w3"}, {"d"});
  model.node("DequantizeLinear", {"quantized", "steps"}, {"q"}, {{"axis", 0}});
  model.node("MatMul", {"d", "q"}, {"e"});
  const Graph graph = load(model);
  // The reshaped weight is the same weight; the quantized one is stored in bytes.
  EXPECT_EQ(parameter_count(graph), 64 + 64);
  EXPECT_EQ(graph.operators.size(), 5U);
  EXPECT_EQ(std::get<Elementwise>(find(graph, "b").kind).keeps, Elementwise::Keeps::nothing);
  EXPECT_EQ(find(graph, "a").inputs[1], find(graph, "d").inputs[1]);
  for (const OperatorId id : {0, 3, 4}) {
    EXPECT_TRUE(std::get<MatMul>(graph.operators[static_cast<std::size_t>(id)].kind).weight);
  }
}

TEST(Onnx, SoftmaxRowsChangedWithVersion13) {
  for (const auto& [opset, width] : std::map<int, int>{{11, 6}, {13, 3}}) {
    OnnxModelBuilder model(opset);
    model.input("x", {4, 2, 3});
    model.node("Softmax", {"x"}, {"y"});
    EXPECT_EQ(std::get<Softmax>(load(model).operators.front().kind), (Softmax{24, width})) << opset;
  }
}

TEST(Onnx, SamplesAreTheBatch) {
  const auto samples = [](const OnnxModelBuilder::Dims& dims, const Dims& given) {
    OnnxModelBuilder model;
    model.input("x", dims);
    model.node("Relu", {"x"}, {"y"});
    return load(model, given).samples;
  };
  EXPECT_EQ(samples({6, 7}, {}), 6);
  EXPECT_EQ(samples({}, {}), 1);
  EXPECT_EQ(samples({128, "batch"}, {{"batch", 5}}), 5);
  EXPECT_EQ(samples({"sequence", 3}, {{"sequence", 9}}), 9);
}

}  // namespace
}  // namespace braid
