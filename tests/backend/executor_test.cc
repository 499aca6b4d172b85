#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/program/random_tensor.h"

#include "backend/node_program.h"
#include "base/error_text.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Executor, RefusesInputsOfAnotherTypeShapeOrNumber) {
  const NodeProgram add{.operation = "Add", .domain = "", .attributes = {}};
  const Program program = add.program({reals({2}, {1, 2}), reals({2}, {3, 4})});
  const auto fed = [&](const std::vector<DenseTensor>& inputs) {
    return error_text([&] { run(program, inputs); });
  };
  EXPECT_EQ(fed({reals({2}, {1, 2})}), "test: takes 2 inputs and was given 1");
  EXPECT_EQ(fed({reals({2}, {1, 2}), reals({1}, {3})}),
            "test: input 'x1': is f32[2] and was given f32[1]");
  EXPECT_EQ(fed({reals({2}, {1, 2}), wholes({2}, {3, 4})}),
            "test: input 'x1': is f32[2] and was given i64[2]");
}

TEST(Executor, NamesWhatHasNoKernel) {
  const NodeProgram typo{.operation = "Reluu", .domain = "", .attributes = {}};
  EXPECT_EQ(error_text([&] { typo.compute({reals({1}, {1})}); }),
            "test: node 'it': the operation 'Reluu' has no kernel; did you mean 'Relu'?");
  // BiasGelu is ONNX Runtime's, Relu is not.
  const NodeProgram elsewhere{.operation = "Relu", .domain = "com.microsoft", .attributes = {}};
  EXPECT_THAT(error_text([&] { elsewhere.compute({reals({1}, {1})}); }),
              HasSubstr("the operation 'Relu' of the domain 'com.microsoft' has no kernel"));
}

TEST(Executor, NamesTheNodeThatFails) {
  const NodeProgram add{.operation = "Add", .domain = "", .attributes = {}};
  EXPECT_EQ(error_text([&] {
              add.compute({reals({2}, {1, 2}), reals({3}, {1, 2, 3})});
            }),
            "test: node 'it' (Add): [2] and [3] cannot be broadcast");
  const NodeProgram divide{.operation = "Div", .domain = "", .attributes = {}};
  EXPECT_EQ(error_text([&] {
              divide.compute({wholes({1}, {1}), wholes({1}, {0})});
            }),
            "test: node 'it' (Div): divides a whole number by zero");
}

TEST(Executor, MissingWeightsAreNamedAndCanBeRandom) {
  const NodeProgram product{.operation = "MatMul", .domain = "", .attributes = {}};
  Program program = product.program({reals({2, 8}, std::vector<double>(16, 1))});
  program.nodes.front().inputs.push_back(static_cast<ValueId>(program.values.size()));
  program.missing.push_back(
      {static_cast<ValueId>(program.values.size()), ElementType::f32, {8, 3}});
  program.values.push_back({"w", nullptr});
  const std::vector<DenseTensor> inputs = random_inputs(program, 1);
  EXPECT_THAT(error_text([&] { run(program, inputs); }),
              HasSubstr("initializer 'w': its numbers are not in the file"));
  Program again = program;
  fill_missing_weights(program, 5);
  fill_missing_weights(again, 5);
  EXPECT_EQ(run(program, inputs), run(again, inputs));
  EXPECT_THAT(run(program, inputs).front().shape, ElementsAre(2, 3));
}

/// x → Relu → a; a + a → b. The observer sees both nodes with their tensors.
TEST(Executor, ShowsEachNodeToTheObserver) {
  Program program;
  program.opset = 13;
  for (const char* name : {"x", "a", "b"}) program.values.push_back({name, nullptr});
  program.inputs.push_back({0, ElementType::f32, std::nullopt});
  program.outputs = {2};
  program.nodes.push_back({"relu", "", "Relu", {0}, {1}, {}});
  program.nodes.push_back({"sum", "", "Add", {1, 1}, {2}, {}});
  const std::vector<DenseTensor> inputs{reals({2}, {-1, 3})};
  std::vector<NodeId> seen;
  const auto outputs = run(program, inputs,
                           [&](NodeId node, std::span<const DenseTensor* const> read,
                               std::span<const DenseTensor> written) {
                             seen.push_back(node);
                             EXPECT_EQ(read.size(), node == 0 ? 1U : 2U);
                             EXPECT_EQ(written.size(), 1U);
                           });
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_THAT(numbers_of<double>(outputs.front()), ElementsAre(0, 6));
}

TEST(Executor, InputsWithoutAShapeCannotBeRandom) {
  Program program;
  program.values.push_back({"x", nullptr});
  program.inputs.push_back({0, ElementType::f32, std::nullopt});
  EXPECT_THAT(error_text([&] { random_inputs(program, 0); }),
              HasSubstr("input 'x': its shape is not known"));
}

}  // namespace
}  // namespace braid
