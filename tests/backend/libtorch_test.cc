#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/executor.h"
#include "braid/backend/measure/kernel_problem.h"
#include "braid/base/error.h"
#include "braid/frontend/onnx_program.h"

#include "backend/backends_under_test.h"
#include "backend/program_builder.h"

namespace braid {
namespace {

using testing::IsEmpty;

const std::filesystem::path node_cases = "/usr/share/libonnx-testdata/data/node";

/// libtorch where it is there; the tests say that they are skipped without it.
class Libtorch : public testing::Test {
 protected:
  void SetUp() override {
    for (const FoundBackend& each : backends_under_test()) {
      if (each.name != "libtorch") continue;
      if (!each.backend) GTEST_SKIP() << "without libtorch: " << each.missing;
      backend_ = &*each.backend;
    }
    ASSERT_NE(backend_, nullptr);
  }

  const BackendPattern& region(const std::string& name) const {
    const auto& all = backend_->regions;
    return *std::find_if(all.begin(), all.end(),
                         [&](const BackendPattern& each) { return each.name == name; });
  }

  const Backend* backend_ = nullptr;
};

KernelJob whole_job(const Program& program, const std::vector<DenseTensor>& inputs) {
  std::vector<NodeId> nodes(program.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  return region_job(program, nodes, forms_of(program, inputs));
}

/// A case of ONNX's, whose whole numbers (axes, shapes, indices) have become constants as they are
/// in models; its numbers are the case's.
struct NodeCase {
  Program program;
  std::vector<DenseTensor> inputs;
};

NodeCase node_case(const std::filesystem::path& folder) {
  NodeCase read{program_from_onnx((folder / "model.onnx").string(), {}), {}};
  std::vector<ProgramInput> fed;
  for (std::size_t i = 0; i < read.program.inputs.size(); ++i) {
    const auto file = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    DenseTensor tensor = tensor_from_onnx(file.string());
    const ProgramInput& input = read.program.inputs[i];
    if (i > 0 && tensor.type == ElementType::i64) {
      read.program.values[static_cast<std::size_t>(input.value)].constant =
          std::make_shared<const DenseTensor>(std::move(tensor));
    } else {
      fed.push_back(input);
      read.inputs.push_back(std::move(tensor));
    }
  }
  read.program.inputs = std::move(fed);
  return read;
}

/// Every case that the library takes gives the reference kernels' answer.
TEST_F(Libtorch, ComputesOnnxsCasesOfItsOperations) {
  std::map<std::string, int> right;
  std::vector<std::string> wrong;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(node_cases)) {
    const std::string name = entry.path().filename().string();
    try {
      const NodeCase read = node_case(entry.path());
      const KernelJob job = whole_job(read.program, read.inputs);
      if (job.region.inputs.size() != read.inputs.size()) continue;
      const std::vector<DenseTensor> expected = run(job.region, read.inputs);
      if (!region("eager").accepts(job)) continue;
      const auto kernel = region("eager").make(job);
      if (kernel == nullptr) {
        ++refused;
        continue;
      }
      const std::string problem = region_problem(*kernel, {read.inputs, expected});
      if (problem.empty()) {
        ++right[job.region.nodes.back().operation];
      } else {
        wrong.push_back(name + ": " + problem);
      }
    } catch (const Error&) {  // What the frontend or the reference kernels do not take.
    } catch (const std::exception& problem) {
      wrong.push_back(name + ": " + problem.what());
    }
  }
  const int cases = std::accumulate(right.begin(), right.end(), 0,
                                    [](int sum, const auto& each) { return sum + each.second; });
  std::cout << cases << " cases of " << right.size() << " operations right, " << refused
            << " refused\n";
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_GT(cases, 200);
  EXPECT_GT(right.size(), 60U);
}

/// Convolutions, a residual, a pooling, a product with a bias, and a second output.
Program two_headed() {
  TestProgramBuilder b;
  const std::vector<Attribute> padded{{"pads", Shape(4, 1)}};
  const ValueId x = b.input({2, 8, 12, 12});
  ValueId y = b.node("Relu", {b.node("Conv", {x, b.weight({8, 8, 3, 3}), b.weight({8})}, padded)});
  y = b.node("Add", {x, b.node("Conv", {y, b.weight({8, 8, 3, 3})}, padded)});
  const ValueId pooled = b.node("GlobalAveragePool", {b.node("Relu", {y})});
  const ValueId rows = b.node("Reshape", {pooled, b.integers(Shape{2, 8})});
  const ValueId sum = b.node("Add", {b.node("MatMul", {rows, b.weight({8, 5})}), b.weight({5})});
  Program program = b.finish({b.node("Softmax", {sum}), sum});
  fill_missing_weights(program, 3);
  return program;
}

TEST_F(Libtorch, RunsWholeNetworksInEveryWay) {
  const Program program = two_headed();
  const std::vector<DenseTensor> inputs = random_inputs(program, 7);
  const KernelJob job = whole_job(program, inputs);
  const std::vector<DenseTensor> expected = run(job.region, inputs);
  ASSERT_EQ(expected.size(), 2U);
  for (const char* way : {"eager", "frozen", "mobile"}) {
    ASSERT_TRUE(region(way).accepts(job));
    const auto kernel = region(way).make(job);
    ASSERT_NE(kernel, nullptr) << way;
    EXPECT_EQ(region_problem(*kernel, {inputs, expected}), "") << way;
    // Another answer is told apart.
    std::vector<DenseTensor> other = expected;
    other[1].as<float>().back() += 1;
    EXPECT_NE(region_problem(*kernel, {inputs, other}), "") << way;
  }
}

TEST_F(Libtorch, RefusesWhatItDoesNotCompute) {
  TestProgramBuilder b;
  const Program program = b.with_output(b.node("Hardmax", {b.input({3, 4})}));
  const std::vector<DenseTensor> inputs = random_inputs(program, 7);
  EXPECT_FALSE(region("eager").accepts(whole_job(program, inputs)));
  TestProgramBuilder reflected;
  const Program padded = reflected.with_output(
      reflected.node("Pad", {reflected.input({3, 4}), reflected.integers(Shape{0, 1, 0, 1})},
                     {{"mode", std::string("reflect")}}));
  const KernelJob job = whole_job(padded, random_inputs(padded, 7));
  EXPECT_TRUE(region("frozen").accepts(job));
  EXPECT_EQ(region("eager").make(job), nullptr);
  EXPECT_EQ(region("frozen").make(job), nullptr);
}

}  // namespace
}  // namespace braid
