#include <cmath>
#include <csignal>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "braid/backend/executor.h"
#include "braid/backend/place/copies_backend.h"
#include "braid/backend/place/placed_program.h"
#include "braid/backend/place/placement_file.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/program/numbers.h"
#include "braid/program/tensor_difference.h"

#include "backend/backends_under_test.h"
#include "backend/kernel_check.h"
#include "backend/program_builder.h"
#include "backend/quick_measure.h"

namespace braid {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Two residual blocks, a pooling, and a classifier whose reshape depends on a shape.
Program small_network() {
  TestProgramBuilder b;
  const std::vector<Attribute> padded{{"pads", Shape(4, 1)}};
  ValueId x = b.input({1, 16, 10, 10});
  const ValueId in = x;
  for (int block = 0; block < 2; ++block) {
    ValueId y = b.node("Relu", {b.node("Conv", {x, b.weight({16, 16, 3, 3})}, padded)});
    y = b.node("Conv", {y, b.weight({16, 16, 3, 3}), b.weight({16})}, padded);
    x = b.node("Relu", {b.node("Add", {y, x})});
  }
  x = b.node("GlobalAveragePool", {x});
  const ValueId batch =
      b.node("Slice", {b.node("Shape", {in})}, {{"starts", Shape{0}}, {"ends", Shape{1}}});
  const ValueId rest = b.node("Constant", {}, {{"value_ints", Shape{-1}}});
  x = b.node("Reshape", {x, b.node("Concat", {batch, rest}, {{"axis", std::int64_t{0}}})});
  x = b.node("Gemm", {x, b.weight({16, 10}), b.weight({10})});
  return b.with_output(b.node("Softmax", {x}));
}

void expect_same_answer(const Program& program, PlacedProgram& placed) {
  for (const std::uint64_t seed : {1, 2}) {
    const std::vector<DenseTensor> inputs = random_inputs(program, seed);
    const std::vector<DenseTensor> expected = run(program, inputs);
    const std::vector<DenseTensor> outputs = placed.run(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    EXPECT_EQ(tensor_difference(outputs[0], expected[0], {1e-4, 1e-5 * greatest_size(expected[0])}),
              "");
  }
}

TEST(Place, WhatDependsOnShapesAloneIsAConstant) {
  const Program program = small_network();
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  for (const ProgramNode& node : fixed.program.nodes) {
    EXPECT_THAT((std::vector<std::string>{"Shape", "Slice", "Constant", "Concat"}),
                testing::Not(testing::Contains(node.operation)));
  }
  EXPECT_THAT(fixed.program.nodes, SizeIs(program.nodes.size() - 4));
  EXPECT_EQ(fixed.reference_s.size(), fixed.program.nodes.size());
}

TEST(Place, WithoutBackendsTheReferenceRunsAll) {
  const Program program = small_network();
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  const ProgramPlacement placement = place_program(fixed, {}, nullptr, {.measure = quick});
  EXPECT_THAT(placement.groups, SizeIs(fixed.program.nodes.size()));
  EXPECT_EQ(placement.measured, 1);
  for (const PlacedGroup& each : placement.groups) {
    EXPECT_EQ(each.backend, each.pattern == "Reshape" ? "copies" : "reference");
  }
  PlacedProgram placed(fixed, placement, {});
  expect_same_answer(program, placed);
}

TEST(Place, MixesBackendsAndGivesTheSameAnswer) {
  const Program program = small_network();
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  const std::vector<FoundBackend>& backends = backends_under_test();
  const TemporaryFolder folder;
  CostStore store(folder / "costs.sqlite");
  const ProgramPlacement mixed = place_program(fixed, backends, &store, {.measure = quick});
  EXPECT_THAT(mixed.wrong, IsEmpty());
  EXPECT_EQ(mixed.known, 0);
  EXPECT_EQ(mixed.measured, store.size());
  std::vector<int> times(fixed.program.nodes.size(), 0);
  double sum_s = 0;
  for (const PlacedGroup& group : mixed.groups) {
    for (const NodeId node : group.nodes) ++times[static_cast<std::size_t>(node)];
    sum_s += group.cost_s;
  }
  for (const PlacedTurn& turn : mixed.turns) sum_s += turn.cost_s;
  EXPECT_THAT(times, Each(1));
  EXPECT_DOUBLE_EQ(sum_s, mixed.predicted_s);
  PlacedProgram placed(fixed, mixed, backends);
  expect_same_answer(program, placed);
  // From the same times: nothing is measured, the same comes out, and fewer backends never help.
  const ProgramPlacement again = place_program(fixed, backends, &store, {.measure = quick});
  EXPECT_EQ(again.measured, 0);
  EXPECT_EQ(again.predicted_s, mixed.predicted_s);
  for (const FoundBackend& each : backends) {
    if (!each.backend) continue;
    const ProgramPlacement alone = place_program(fixed, {each}, &store, {.measure = quick});
    EXPECT_GE(alone.predicted_s, mixed.predicted_s) << each.name;
  }
}

/// A backend of one pattern whose kernel does what `action` says.
FoundBackend backend_of(const std::string& name,
                        std::function<void(const DenseTensor&, DenseTensor&)> action) {
  class ActionKernel : public ComputeKernel {
   public:
    explicit ActionKernel(std::function<void(const DenseTensor&, DenseTensor&)> does)
        : action_(std::move(does)) {}
    void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
      action_(*inputs[0], output);
    }

   private:
    std::function<void(const DenseTensor&, DenseTensor&)> action_;
  };
  FoundBackend found{name, Backend{name, "1", {}}, {}};
  found.backend->patterns.push_back({"relu", pattern("Relu", {any()}),
                                     [](const KernelJob&) { return true; },
                                     [action](const KernelJob&) -> std::unique_ptr<ComputeKernel> {
                                       return std::make_unique<ActionKernel>(action);
                                     }});
  return found;
}

TEST(Place, KernelsThatFailOrAreWrongAreLeftOut) {
  TestProgramBuilder b;
  const Program program = b.with_output(b.node("Relu", {b.input({1000})}));
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  const std::vector<FoundBackend> backends{
      backend_of("careless", [](const DenseTensor& in, DenseTensor& out) { out = in; }),
      backend_of("failing", [](const DenseTensor&, DenseTensor&) { throw Error("out of order"); }),
      FoundBackend{"missing", std::nullopt, "not there"}};
  const ProgramPlacement placement = place_program(fixed, backends, nullptr, {.measure = quick});
  ASSERT_THAT(placement.wrong, SizeIs(2));
  EXPECT_THAT(placement.wrong[0], HasSubstr("careless: relu: opset 15: Relu(0,)->1; 0:f32[1000]"));
  EXPECT_THAT(placement.wrong[1], HasSubstr("out of order"));
  ASSERT_THAT(placement.groups, SizeIs(1));
  EXPECT_EQ(placement.groups[0].backend, "reference");
}

TEST(Place, KernelsThatFailedAreNotTriedAgain) {
  const TemporaryFolder folder;
  CostStore store(folder / "costs.sqlite");
  TestProgramBuilder b;
  const Program program = b.with_output(b.node("Relu", {b.input({1000})}));
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  const auto careless = [](const DenseTensor& in, DenseTensor& out) { out = in; };
  FoundBackend refusing = backend_of("refusing", careless);
  refusing.backend->patterns[0].make = [](const KernelJob&) { return nullptr; };
  const auto placed = [&](bool tries) {
    std::vector<FoundBackend> backends{backend_of("careless", careless), refusing};
    for (FoundBackend& each : backends) {
      if (tries) continue;
      each.backend->patterns[0].make = [](const KernelJob&) -> std::unique_ptr<ComputeKernel> {
        throw Error("is made again");
      };
    }
    return place_program(fixed, backends, &store, {.measure = quick});
  };
  const ProgramPlacement first = placed(true), second = placed(false);
  ASSERT_THAT(first.wrong, SizeIs(1));
  EXPECT_EQ(second.wrong, first.wrong);
  EXPECT_EQ(first.refused, 1);
  EXPECT_EQ(second.refused, 1);
  EXPECT_EQ(second.measured + second.known, 0);
}

TEST(Place, KernelsThatCrashOrHangCostThemselvesAlone) {
  TestProgramBuilder b;
  const Program program = b.with_output(b.node("Relu", {b.input({1000})}));
  FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  fixed.reference_s.assign(1, 100);
  const auto right = [](const DenseTensor& in, DenseTensor& out) {
    for (std::size_t i = 0; i < out.as<float>().size(); ++i) {
      out.as<float>()[i] = std::max(in.as<float>()[i], 0.0F);
    }
  };
  const std::vector<FoundBackend> backends{
      backend_of("crashing", [](const DenseTensor&, DenseTensor&) { std::raise(SIGKILL); }),
      backend_of("right", right),
      backend_of("hanging", [](const DenseTensor&, DenseTensor&) { ::pause(); })};
  const ProgramPlacement placement =
      place_program(fixed, backends, nullptr, {.measure = quick, .kernel_limit_s = 0.2});
  ASSERT_THAT(placement.wrong, SizeIs(2));
  EXPECT_THAT(placement.wrong[0], HasSubstr("crashed (signal 9)"));
  EXPECT_THAT(placement.wrong[1], HasSubstr("ran for more than 0.2 s"));
  ASSERT_THAT(placement.groups, SizeIs(1));
  EXPECT_EQ(placement.groups[0].backend, "right");
}

TEST(Place, CopiesAreThoseOfTheReference) {
  std::vector<Program> programs;
  const auto add = [&](const auto& node) {
    TestProgramBuilder b(13);
    programs.push_back(b.with_output(node(b)));
  };
  const auto slices = [](const Shape& starts, const Shape& ends, const Shape& axes,
                         const Shape& steps) {
    return [=](TestProgramBuilder& b) {
      return b.node("Slice", {b.input({3, 4, 40}), b.integers(starts), b.integers(ends),
                              b.integers(axes), b.integers(steps)});
    };
  };
  add(slices({8}, {32}, {2}, {1}));
  add(slices({-1, 1}, {-9, 4}, {0, 1}, {-1, 2}));
  add([](auto& b) { return b.node("Reshape", {b.input({6, 20}), b.integers(Shape{5, -1})}); });
  add([](auto& b) { return b.node("Flatten", {b.input({2, 3, 20})}); });
  add([](auto& b) {
    const ValueId x = b.input({2, 3, 16});
    return b.node("Concat", {x, b.input({2, 5, 16}), x}, {{"axis", std::int64_t{1}}});
  });
  add([](auto& b) {
    return b.node("Transpose", {b.input({2, 3, 4, 32})}, {{"perm", Shape{2, 0, 1, 3}}});
  });
  add([](auto& b) { return b.node("Expand", {b.input({1, 64}), b.integers(Shape{3, 1})}); });
  const std::vector<FoundBackend> copies{{"copies", copies_backend(), {}}};
  KernelCheck check;
  for (const Program& program : programs) {
    check_kernels(program, random_inputs(program, 3), copies, check);
  }
  EXPECT_THAT(check.wrong, IsEmpty());
  EXPECT_EQ(check.right["copies: Slice"], 2);
  for (const char* name : {"Reshape", "Flatten", "Concat", "Transpose", "Expand"}) {
    EXPECT_EQ(check.right["copies: " + std::string(name)], 1) << name;
  }
}

TEST(Place, BatchNormalisationsAreFolded) {
  TestProgramBuilder b;
  const auto normalized = [&](ValueId x, std::int64_t channels) {
    return b.node(
        "BatchNormalization",
        {x, b.weight({channels}), b.weight({channels}), b.weight({channels}), b.weight({channels})},
        {{"epsilon", 1e-3}});
  };
  const ValueId x = b.input({2, 4, 5, 5});
  const ValueId first = normalized(x, 4);  // No convolution before it.
  const ValueId conv = b.node("Conv", {first, b.weight({6, 4, 1, 1}), b.weight({6})});
  const ValueId second = normalized(conv, 6);
  const ValueId shared = b.node("Conv", {second, b.weight({6, 6, 1, 1})});
  const ValueId third = normalized(shared, 6);  // The convolution's result is read twice.
  const Program program = b.with_output(b.node("Add", {shared, third}));
  const std::vector<DenseTensor> inputs = random_inputs(program, 5);
  const FixedProgram fixed = fixed_program(program, inputs);
  std::vector<std::string> operations;
  for (const ProgramNode& node : fixed.program.nodes) operations.push_back(node.operation);
  EXPECT_THAT(operations, ElementsAre("Mul", "Add", "Conv", "Conv", "Mul", "Add", "Add"));
  EXPECT_EQ(fixed.reference_s.size(), operations.size());
  const DenseTensor folded = run(fixed.program, inputs).front();
  EXPECT_EQ(tensor_difference(folded, fixed.expected.front(), {1e-5, 1e-5}), "");
}

/// Layer normalisation and Gelu as exporters write them without operations for them.
struct WrittenInParts {
  bool axes_are_read = false, multiplies = false, divides = true;
  int association = 0;
  std::int64_t axis = -1;
  double exponent = 2, one = 1, half = 0.5, root = std::sqrt(2.0);
  bool reads_deviation_twice = false;

  Program program() const {
    TestProgramBuilder b(axes_are_read ? 18 : 13);
    const ValueId in = b.input({3, 4, 4});
    const auto mean = [&](ValueId of) {
      if (axes_are_read) return b.node("ReduceMean", {of, b.integers(Shape{axis})});
      return b.node("ReduceMean", {of}, {{"axes", Shape{axis}}});
    };
    const ValueId d = b.node("Sub", {in, mean(in)});
    const ValueId square =
        multiplies ? b.node("Mul", {d, d}) : b.node("Pow", {d, b.real(exponent)});
    const ValueId deviation = b.node("Sqrt", {b.node("Add", {b.real(1e-3), mean(square)})});
    const ValueId x = b.node(
        "Add", {b.node("Mul", {b.weight({4}), b.node("Div", {d, deviation})}), b.weight({4})});
    const ValueId inner =
        divides ? b.node("Div", {x, b.real(root)}) : b.node("Mul", {x, b.real(1 / root)});
    const ValueId one_more = b.node("Add", {b.node("Erf", {inner}), b.real(one)});
    ValueId y = -1;
    if (association == 0) y = b.node("Mul", {b.node("Mul", {x, one_more}), b.real(half)});
    if (association == 1) y = b.node("Mul", {b.node("Mul", {one_more, b.real(half)}), x});
    if (association == 2) y = b.node("Mul", {one_more, b.node("Mul", {b.real(half), x})});
    return b.with_output(reads_deviation_twice ? b.node("Mul", {y, deviation}) : y);
  }

  std::vector<std::string> operations() const {
    const Program all = program();
    const std::vector<DenseTensor> inputs = random_inputs(all, 5);
    const FixedProgram fixed = fixed_program(all, inputs);
    EXPECT_EQ(fixed.reference_s.size(), fixed.program.nodes.size());
    const DenseTensor composed = run(fixed.program, inputs).front();
    EXPECT_EQ(tensor_difference(composed, fixed.expected.front(), {1e-5, 1e-5}), "");
    std::vector<std::string> names;
    for (const ProgramNode& node : fixed.program.nodes) names.push_back(node.operation);
    return names;
  }
};

TEST(Place, OperationsWrittenInPartsAreComposed) {
  for (const bool axes : {false, true}) {
    for (const bool multiplies : {false, true}) {
      for (const bool divides : {false, true}) {
        for (const int association : {0, 1, 2}) {
          const WrittenInParts written{axes, multiplies, divides, association};
          EXPECT_THAT(written.operations(), ElementsAre("LayerNormalization", "Gelu"));
        }
      }
    }
  }
}

/// Each has one thing that the operation has not.
TEST(Place, WhatOnlyLooksLikeAnOperationStaysInParts) {
  using testing::Contains;
  using testing::Not;
  for (const bool axes : {false, true}) {
    EXPECT_THAT((WrittenInParts{.axes_are_read = axes, .axis = 1}).operations(),
                Not(Contains("LayerNormalization")));
  }
  EXPECT_THAT((WrittenInParts{.exponent = 4}).operations(), Not(Contains("LayerNormalization")));
  EXPECT_THAT((WrittenInParts{.reads_deviation_twice = true}).operations(),
              Not(Contains("LayerNormalization")));
  EXPECT_THAT((WrittenInParts{.half = 0.25}).operations(), Not(Contains("Gelu")));
  EXPECT_THAT((WrittenInParts{.one = std::sqrt(2.0), .root = 1}).operations(),
              Not(Contains("Gelu")));
  EXPECT_THAT((WrittenInParts{.root = 1.5}).operations(), Not(Contains("Gelu")));
}

TEST(Place, FilesGiveBackWhatWasPlaced) {
  const Program program = small_network();
  const FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  PlacementFile file;
  file.model = "a \"model\"";
  file.dims = {{"batch", 3}};
  file.machine = machine_name();
  file.placement = place_program(fixed, backends_under_test(), nullptr, {.measure = quick});
  file.measured = Measurement{0.1, 0.09, 1.0 / 3, 1e-9, 21, 2, 7};
  for (const PlacedGroup& group : file.placement.groups) {
    file.operators.push_back(operator_names(fixed, group));
    for (const FoundBackend& each : backends_under_test()) {
      if (each.name == group.backend) file.versions[each.name] = each.backend->version;
    }
  }
  const TemporaryFolder folder;
  write_file(folder / "placement.json", placement_text(file));
  const PlacementFile read = read_placement_file(folder / "placement.json");
  EXPECT_EQ(placement_text(read), placement_text(file));
  check_placement(read, fixed, backends_under_test(), "placement.json");
  PlacedProgram placed(fixed, read.placement, backends_under_test());
  expect_same_answer(program, placed);
}

TEST(Place, EqualKernelsAreMeasuredOnce) {
  TestProgramBuilder b;
  ValueId x = b.input({1000});
  for (int i = 0; i < 5; ++i) x = b.node("Relu", {x});
  const Program program = b.with_output(x);
  FixedProgram fixed = fixed_program(program, random_inputs(program, 1));
  fixed.reference_s.assign(5, 100);
  const auto right = [](const DenseTensor& in, DenseTensor& out) {
    for (std::size_t i = 0; i < out.as<float>().size(); ++i) {
      out.as<float>()[i] = std::max(in.as<float>()[i], 0.0F);
    }
  };
  const ProgramPlacement placement =
      place_program(fixed, {backend_of("right", right)}, nullptr, {.measure = quick});
  EXPECT_EQ(placement.measured, 1);
  EXPECT_EQ(placement.candidates, 10);
  ASSERT_THAT(placement.groups, SizeIs(5));
  for (const PlacedGroup& each : placement.groups) EXPECT_EQ(each.backend, "right");
}

}  // namespace
}  // namespace braid
