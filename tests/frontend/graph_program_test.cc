#include "braid/frontend/graph_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::HasSubstr;

std::int64_t parameters_of(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.is_parameter) continue;
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.dims) count *= size;
    sum += count;
  }
  return sum;
}

std::int64_t nodes_of(const Program& program, const std::string& operation) {
  std::int64_t count = 0;
  for (const ProgramNode& node : program.nodes) count += node.operation == operation ? 1 : 0;
  return count;
}

TEST(GraphProgram, HasTheModelsWeightsAndOperations) {
  const Graph bert = load_model("bert-base", {.seq_len = 32, .dims = {}});
  const Program program = program_from_graph(bert);
  // Each parameter is there once, in f32; all else are sizes and single numbers.
  EXPECT_GE(weight_bytes(program), 4.0 * static_cast<double>(parameters_of(bert)));
  EXPECT_LT(weight_bytes(program), 4.0 * static_cast<double>(parameters_of(bert)) + 1e5);
  EXPECT_EQ(nodes_of(program, "Softmax"), 12);
  EXPECT_EQ(nodes_of(program, "LayerNormalization"), 26);
  EXPECT_EQ(nodes_of(program, "Gelu"), 14);
  EXPECT_EQ(nodes_of(program, "Dropout"), 0);
}

TEST(GraphProgram, ConvolutionsHaveTheirStridesAndPadding) {
  const Program program = program_from_graph(load_model("resnet-50", {.dims = {}}));
  EXPECT_EQ(nodes_of(program, "Conv"), 53);
  EXPECT_EQ(nodes_of(program, "BatchNormalization"), 53);
  EXPECT_EQ(nodes_of(program, "MaxPool"), 1);
  EXPECT_EQ(nodes_of(program, "GlobalAveragePool"), 1);
  const ProgramNode& stem = program.nodes.front();
  EXPECT_EQ(std::get<Shape>(*stem.attribute("strides")), (Shape{2, 2}));
  EXPECT_EQ(std::get<Shape>(*stem.attribute("pads")), (Shape{3, 3, 2, 2}));
  EXPECT_EQ(program.inputs.front().shape, (Shape{1, 3, 224, 224}));
}

TEST(GraphProgram, ModelsOfTheZooRunOrSayWhatStandsInTheWay) {
  int run = 0;
  for (const ZooEntry& entry : zoo_models()) {
    const Graph whole = load_model(entry.name, {.dims = {}});
    // Models of sequences are asked for short ones.
    const bool is_language = whole.shape.has_value();
    const Graph graph =
        is_language ? load_model(entry.name, {.seq_len = 32, .layers = 2, .dims = {}}) : whole;
    try {
      const Program program = program_from_graph(graph);
      EXPECT_FALSE(program.nodes.empty()) << entry.name;
      EXPECT_FALSE(program.outputs.empty()) << entry.name;
      ++run;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("; give ")) << entry.name;
    }
  }
  EXPECT_GE(run, 35);
}

TEST(GraphProgram, RefusesWhatNoRuleExplains) {
  const auto refused = [](const std::string& model) {
    return error_text([&] { program_from_graph(load_model(model, {.seq_len = 32, .dims = {}})); });
  };
  EXPECT_THAT(error_text([&] { program_from_graph(load_model("llama-3-8b", {.dims = {}})); }),
              HasSubstr("give a lesser --seq-len"));
  EXPECT_THAT(refused("gnmt"), HasSubstr("encoder.layer0.forward: recurrent cells"));
  EXPECT_THAT(refused("mixtral-8x7b"), HasSubstr("block0.moe.router"));
  EXPECT_THAT(error_text([&] { program_from_graph(load_model("transgan", {.dims = {}})); }),
              HasSubstr("which relative position each row of its table is for"));
}

}  // namespace
}  // namespace braid
