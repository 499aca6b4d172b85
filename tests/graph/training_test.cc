#include "braid/graph/training.h"

#include <map>

#include <gtest/gtest.h>

#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "graph/graph_builder.h"

namespace braid {
namespace {

void expect_near(const OpWork& a, const OpWork& b, const std::string& name) {
  EXPECT_DOUBLE_EQ(a.matmul_flops, b.matmul_flops) << name;
  EXPECT_DOUBLE_EQ(a.vector_flops, b.vector_flops) << name;
  EXPECT_DOUBLE_EQ(a.input_bytes, b.input_bytes) << name;
  EXPECT_DOUBLE_EQ(a.weight_bytes, b.weight_bytes) << name;
  EXPECT_DOUBLE_EQ(a.output_bytes, b.output_bytes) << name;
}

/// Every kind once in a chain, each with the parameters it may have.
Graph every_kind() {
  GraphBuilder b;
  const TensorId ids = b.input({16}, Dtype::i32);
  const auto w = [&] { return b.parameter({8, 8}); };
  const std::vector<std::int64_t> dims{16, 8};
  TensorId x = b.add(Embedding{.rows = 8, .width = 8, .lookups = 16}, {ids, w()}, dims);
  x = b.add(MatMul{.m = 16, .n = 8, .k = 8, .bias = true}, {x, w(), b.parameter({8})}, dims);
  x = b.add(Attention{.q_len = 16, .kv_len = 16, .qk_dim = 8, .v_dim = 8}, {x, x, x}, dims);
  x = b.add(Attention{.q_len = 16, .kv_len = 16, .flash = false, .dropout = true}, {x, x, x}, dims);
  x = b.add(Convolution{.out_channels = 8, .out_positions = 16, .in_positions = 16}, {x, w()},
            dims);
  x = b.add(Recurrent{.steps = 4, .rows = 4, .n = 8, .k = 8}, {x, w()}, dims);
  x = b.add(Normalization{.elements = 128, .width = 8}, {x, b.parameter({8})}, dims);
  x = b.add(Softmax{.elements = 128, .width = 8}, {x}, dims);
  x = b.add(Elementwise{.elements = 128}, {x, w()}, dims);
  x = b.add(Elementwise{.elements = 128, .keeps = Elementwise::Keeps::mask}, {x}, dims);
  const TensorId scores =
      b.add(MoeRouter{.tokens = 16, .hidden = 8, .experts = 8, .top_k = 2}, {x, w()}, {16, 8});
  x = b.add(MoeExperts{.tokens = 16, .hidden = 8, .inner = 4, .experts = 8, .top_k = 2},
            {x, scores, b.parameter({8, 3, 8, 4})}, dims);
  x = b.add(MatMul{.m = 16, .n = 8, .k = 16, .weight = false}, {x, x}, dims);
  x = b.add(DataMovement{}, {x}, dims);
  x = b.add(Reduction{.elements = 128}, {x}, {16});
  b.graph.outputs = {b.add(Loss{.rows = 16, .width = 8}, {x, ids}, {}, Dtype::f32)};
  return b.graph;
}

TEST(Training, WorkOfGradientOperatorsIsBackwardWork) {
  for (const Graph& forward : {every_kind(), gpt({})}) {
    check_graph(forward, "forward");
    const Graph training = training_graph(forward);
    check_graph(training, "training");
    std::map<std::string, OpWork> found;
    for (const Operator& op : training.operators) found[op.name] = forward_work(training, op);
    for (const Operator& op : forward.operators) {
      const BackwardWork expected = backward_work(forward, op);
      expect_near(found[op.name + ".input_gradient"], expected.input_gradient, op.name);
      expect_near(found[op.name + ".weight_gradient"], expected.weight_gradient, op.name);
      expect_near(found[op.name], forward_work(forward, op), op.name);
    }
  }
}

TEST(Training, EachParameterGetsOneStepFromAllItsGradients) {
  const Graph forward = gpt({});
  const Graph training = training_graph(forward);
  std::map<TensorId, int> steps;
  std::map<TensorId, int> written;  // Gradients by the operator that reads the parameter.
  for (const Operator& op : training.operators) {
    if (std::holds_alternative<OptimizerStep>(op.kind)) {
      ++steps[op.inputs[0]];
      EXPECT_EQ(training.tensors[static_cast<std::size_t>(op.inputs[1])].dims,
                training.tensors[static_cast<std::size_t>(op.inputs[0])].dims);
      EXPECT_GE(training.tensors[static_cast<std::size_t>(op.inputs[1])].producer, 0);
    }
  }
  std::size_t parameters = 0;
  for (const Tensor& tensor : forward.tensors) parameters += tensor.is_parameter ? 1 : 0;
  EXPECT_EQ(steps.size(), parameters);
  for (const auto& [tensor, count] : steps) EXPECT_EQ(count, 1) << tensor;
  // The tied table has two readers, so its two gradients are added.
  int sums_of_table = 0;
  for (const Operator& op : training.operators) {
    if (op.name == "t1.gradient_sum") {
      ++sums_of_table;
      EXPECT_EQ(op.inputs.size(), 2U);
    }
  }
  EXPECT_EQ(sums_of_table, 1);
  // The only seed is the gradient of the loss.
  EXPECT_EQ(training.inputs.size(), forward.inputs.size() + 1);
}

TEST(Training, LayersAreMirroredAndStillRepeat) {
  const GptSizes s{.layers = 4};
  Graph training = training_graph(gpt(s));
  find_repeated_layers(training);
  ASSERT_EQ(training.layers.size(), 6U + 6U + 1U);
  EXPECT_EQ(training.layers[6].name, "head backward");
  EXPECT_EQ(training.layers[7].name, "block 3 backward");
  EXPECT_EQ(training.layers[11].name, "embedding backward");
  EXPECT_EQ(training.layers[12].name, "optimizer");
  for (std::size_t block = 8; block <= 10; ++block) {
    EXPECT_EQ(training.layers[block].kind, training.layers[7].kind);
  }
}

TEST(Training, NamesThatAreTakenGetANumber) {
  Graph forward = gpt({});
  forward.operators[2].name = "op3.input_gradient";
  EXPECT_NO_THROW(check_graph(training_graph(forward), "training"));
}

}  // namespace
}  // namespace braid
