#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/backends.h"
#include "braid/backend/executor.h"
#include "braid/frontend/onnx_program.h"

#include "backend/backends_under_test.h"
#include "backend/kernel_check.h"
#include "backend/program_builder.h"

namespace braid {
namespace {

using testing::IsEmpty;

const std::filesystem::path onnx_data = "/usr/share/libonnx-testdata/data";

void print(const KernelCheck& check) {
  for (const auto& [name, count] : check.right) {
    std::cout << "  " << name << ": " << count << " kernels right\n";
  }
  for (const auto& [name, count] : check.refused) {
    std::cout << "  " << name << ": " << count << " refused by the library\n";
  }
}

void expect_right(const std::vector<Program>& programs, KernelCheck& check) {
  for (const Program& program : programs) {
    check_kernels(program, random_inputs(program, 11), backends_under_test(), check);
  }
  print(check);
  EXPECT_THAT(check.wrong, IsEmpty());
}

TEST(Kernels, ProductsWithBiasResidualAndRelu) {
  std::vector<Program> programs;
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 100, 37}, {33, 17, 65}, {64, 64, 64}, {128, 96, 40}}) {
    TestProgramBuilder b;
    const ValueId x = b.input({m, k});
    const ValueId product = b.node("MatMul", {x, b.weight({k, n})});
    const ValueId biased = b.node("Add", {b.weight({n}), product});
    const ValueId relu = b.node("Relu", {biased});
    programs.push_back(b.with_output(
        b.node("Add", {b.node("MatMul", {relu, b.weight({n, n})}), b.input({m, n})})));
    for (const std::int64_t turned : {0, 1}) {
      TestProgramBuilder g;
      const ValueId a = g.input(turned == 1 ? Shape{k, m} : Shape{m, k});
      const ValueId w = g.weight(turned == 1 ? Shape{n, k} : Shape{k, n});
      programs.push_back(g.with_output(g.node(
          "Relu",
          {g.node("Gemm", {a, w, g.weight({n})}, {{"transA", turned}, {"transB", turned}})})));
    }
  }
  TestProgramBuilder
      stacked;  // Eight heads: Q·Kᵀ as it stands, and rows of a sequence by one weight.
  const ValueId scores =
      stacked.node("MatMul", {stacked.input({2, 8, 10, 16}), stacked.input({2, 8, 16, 12})});
  programs.push_back(
      stacked.with_output(stacked.node("MatMul", {scores, stacked.weight({12, 24})})));
  KernelCheck check;
  expect_right(programs, check);
  for (const FoundBackend& each : backends_under_test()) {
    if (!each.backend) continue;
    if (!each.backend->generated.empty()) {  // By tile, which depends on the processor.
      const auto tiled = check.right.lower_bound(each.name + ": fused ");
      EXPECT_TRUE(tiled != check.right.end() && tiled->first.starts_with(each.name)) << each.name;
      continue;
    }
    EXPECT_GT(check.right[each.name + ": matmul"], 0) << each.name;
    EXPECT_GT(check.right[each.name + ": matmul+add+relu"], 0) << each.name;
  }
}

TEST(Kernels, ConvolutionsWithWhatFollows) {
  std::vector<Program> programs;
  struct Case {
    std::int64_t channels, outputs, groups, size, kernel, stride, pad, dilation;
  };
  for (const Case& c : {Case{3, 8, 1, 15, 3, 2, 1, 1}, Case{16, 32, 1, 14, 1, 1, 0, 1},
                        Case{32, 32, 4, 9, 3, 1, 1, 1}, Case{8, 8, 8, 12, 3, 1, 1, 1},
                        Case{4, 6, 2, 13, 3, 1, 2, 2}, Case{5, 7, 1, 8, 5, 3, 2, 1}}) {
    const std::vector<Attribute> attributes{{"group", c.groups},
                                            {"strides", Shape(2, c.stride)},
                                            {"pads", Shape(4, c.pad)},
                                            {"dilations", Shape(2, c.dilation)}};
    const Shape w{c.outputs, c.channels / c.groups, c.kernel, c.kernel};
    for (const bool biased : {false, true}) {
      TestProgramBuilder b;
      const ValueId x = b.input({2, c.channels, c.size, c.size});
      std::vector<ValueId> operands{x, b.weight(w)};
      if (biased) operands.push_back(b.weight({c.outputs}));
      const ValueId conv = b.node("Conv", operands, attributes);
      const ValueId relu = b.node("Relu", {conv});
      const ValueId again = b.node("Conv", {relu, b.weight({c.outputs, c.outputs, 1, 1})});
      programs.push_back(b.with_output(b.node("Relu", {b.node("Add", {relu, again})})));
    }
  }
  TestProgramBuilder video;
  programs.push_back(video.with_output(video.node(
      "Relu", {video.node("Conv", {video.input({1, 4, 6, 7, 8}), video.weight({5, 4, 3, 3, 3})},
                          {{"pads", Shape(6, 1)}})})));
  KernelCheck check;
  expect_right(programs, check);
  for (const FoundBackend& each : backends_under_test()) {
    if (!each.backend || (each.name != "onednn" && each.name != "xnnpack")) continue;
    EXPECT_GT(check.right[each.name + ": conv+relu (turning)"], 0) << each.name;
  }
}

TEST(Kernels, WhatTransformersAreMadeOf) {
  std::vector<Program> programs;
  for (const char* form : {"none", "tanh"}) {
    TestProgramBuilder b(20);
    const std::vector<Attribute> approximate{{"approximate", std::string(form)}};
    const ValueId x = b.input({6, 10});
    const ValueId y = b.node("Add", {b.node("MatMul", {x, b.weight({10, 24})}), b.weight({24})});
    const ValueId shaped = b.node("Gelu", {y}, approximate);
    programs.push_back(b.with_output(b.node("Gelu", {shaped}, approximate)));
  }
  for (const bool shifts : {false, true}) {
    TestProgramBuilder b(20);
    std::vector<ValueId> operands{b.input({2, 7, 24}), b.weight({24})};
    if (shifts) operands.push_back(b.weight({24}));
    programs.push_back(b.with_output(b.node("LayerNormalization", operands, {{"epsilon", 1e-3}})));
  }
  for (const Shape& order : {Shape{0, 2, 1, 3}, Shape{0, 2, 3, 1}, Shape{3, 1, 2, 0}, Shape{}}) {
    TestProgramBuilder b(20);
    std::vector<Attribute> attributes;
    if (!order.empty()) attributes.push_back({"perm", order});
    programs.push_back(b.with_output(b.node("Transpose", {b.input({2, 3, 4, 5})}, attributes)));
  }
  for (const bool turned : {false, true}) {  // Scale and shift by channel, then Relu.
    TestProgramBuilder b(20);
    const ValueId x = b.input({2, 5, 6, 7});
    const ValueId product = b.node("Mul", {x, b.weight({5, 1, 1})});
    const ValueId shift = b.weight({5, 1, 1});
    const ValueId sum =
        b.node("Add", turned ? std::vector{shift, product} : std::vector{product, shift});
    programs.push_back(b.with_output(b.node("Relu", {sum})));
  }
  TestProgramBuilder twice(20);  // The sum of a product with itself.
  const ValueId square = twice.node("Mul", {twice.input({3, 4}), twice.weight({4})});
  programs.push_back(twice.with_output(twice.node("Add", {square, square})));
  KernelCheck check;
  expect_right(programs, check);
  for (const FoundBackend& each : backends_under_test()) {
    if (!each.backend || each.name != "onednn") continue;
    for (const char* kernel : {"matmul+add+gelu", "Gelu", "layer_norm", "layer_norm+shift",
                               "transpose", "Mul+add", "Mul+add+relu"}) {
      EXPECT_GT(check.right["onednn: " + std::string(kernel)], 0) << kernel;
    }
  }
}

TEST(Kernels, PoolingAndPointwise) {
  std::vector<Program> programs;
  for (const char* operation : {"MaxPool", "AveragePool"}) {
    for (const std::int64_t pad : {0, 1}) {
      TestProgramBuilder b;
      programs.push_back(b.with_output(b.node(
          operation, {b.input({2, 6, 11, 9})},
          {{"kernel_shape", Shape{3, 2}}, {"strides", Shape{2, 1}}, {"pads", Shape(4, pad)}})));
    }
  }
  TestProgramBuilder chain;
  ValueId x = chain.input({3, 4, 10});
  for (const char* operation : {"Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Softmax"}) {
    x = chain.node(operation, {x});
  }
  for (const char* operation : {"Add", "Mul", "Sub", "Max", "Min", "Div"}) {
    x = chain.node(operation, {x, chain.weight({10})});
  }
  programs.push_back(chain.with_output(chain.node("Relu", {chain.node("Add", {x, x})})));
  TestProgramBuilder global;
  programs.push_back(
      global.with_output(global.node("GlobalAveragePool", {global.input({2, 5, 7, 6})})));
  KernelCheck check;
  expect_right(programs, check);
}

/// Every kernel that matches anywhere in ONNX's models of PyTorch's layers.
TEST(Kernels, OfOnnxModels) {
  KernelCheck check;
  int models = 0;
  for (const char* suite : {"pytorch-converted", "pytorch-operator"}) {
    for (const auto& each : std::filesystem::directory_iterator(onnx_data / suite)) {
      const Program program = program_from_onnx((each.path() / "model.onnx").string(), {});
      const bool known = std::all_of(program.inputs.begin(), program.inputs.end(),
                                     [](const ProgramInput& in) { return in.shape.has_value(); });
      if (!known || !program.missing.empty()) continue;
      check_kernels(program, random_inputs(program, 5), backends_under_test(), check);
      ++models;
    }
  }
  std::cout << models << " models\n";
  print(check);
  EXPECT_GT(models, 100);
  EXPECT_THAT(check.wrong, IsEmpty());
}

TEST(Kernels, BackendsThatAreNotAskedForAreNotLoaded) {
  const std::vector<std::string> asked{"openblas"};
  std::vector<std::string> names;
  for (const FoundBackend& each : find_backends({.threads = 1, .names = asked})) {
    EXPECT_TRUE(each.name == "openblas" || !each.backend.has_value()) << each.name;
    names.push_back(each.name);
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, testing::IsSupersetOf({"blis", "eigen", "libtorch", "openblas"}));
}

/// A kernel that is wrong is found.
TEST(Kernels, AWrongOneIsFound) {
  class OffByOne : public ComputeKernel {
   public:
    void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
      output = *inputs[0];
      output.as<float>().back() += 1;
    }
  };
  FoundBackend wrong{"wrong", Backend{"wrong", "0", {}}, {}};
  wrong.backend->patterns.push_back({"relu", pattern("Relu", {any()}),
                                     [](const KernelJob&) { return true; },
                                     [](const KernelJob&) -> std::unique_ptr<ComputeKernel> {
                                       return std::make_unique<OffByOne>();
                                     }});
  TestProgramBuilder b;
  const Program program = b.with_output(b.node("Relu", {b.input({4})}));
  KernelCheck check;
  check_kernels(program, random_inputs(program, 1), {wrong}, check);
  EXPECT_THAT(check.wrong, testing::SizeIs(1));
  EXPECT_THAT(check.right, IsEmpty());
}

TEST(Kernels, AJobsTextTellsWhatItsKernelDependsOn) {
  const auto text = [](std::int64_t columns, std::int64_t turned) {
    TestProgramBuilder b;
    const Shape w = turned == 1 ? Shape{columns, 5} : Shape{5, columns};
    const Program program =
        b.with_output(b.node("Gemm", {b.input({3, 5}), b.weight(w)}, {{"transB", turned}}));
    const ProgramOpGraph graph = op_graph_of(program);
    const auto matches = PatternMatcher(graph.graph)
                             .matches(pattern("Gemm", {any(), any()}), graph.graph.outputs[0]);
    return job_text(
        kernel_job(program, graph, matches[0], forms_of(program, random_inputs(program, 1))));
  };
  EXPECT_EQ(text(7, 0), "opset 15: Gemm(0,1,){transB=0}->2; 0:f32[3, 5] 1:const f32[5, 7]");
  EXPECT_EQ(text(7, 0), text(7, 0));
  EXPECT_NE(text(7, 0), text(8, 0));
  EXPECT_NE(text(5, 0), text(5, 1));
}

}  // namespace
}  // namespace braid
