#include <filesystem>
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/reference/reference_kernel.h"
#include "braid/frontend/onnx_rules.h"

#include "backend/onnx_case.h"

namespace braid {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Key;
using testing::Not;

const std::filesystem::path test_data = "/usr/share/libonnx-testdata/data";
constexpr Tolerance usual_tolerance{.relative = 1e-5, .absolute = 1e-6};

/// Runs a folder's cases, and prints how many ran, which did not and why.
OnnxCaseCounts run_and_print(const std::string& folder) {
  const OnnxCaseCounts counts = run_onnx_cases(test_data / folder, {usual_tolerance, {}});
  std::cout << folder << ": " << counts.cases << " cases, " << counts.of_known_operations
            << " of operations that have a kernel, of which " << counts.passed.size()
            << " pass and " << counts.left_out_of_known << " are left out\n";
  for (const auto& [operation, count] : counts.unknown_operations) {
    std::cout << "  no kernel: " << operation << " (" << count << ")\n";
  }
  for (const auto& [name, reason] : counts.left_out) {
    std::cout << "  left out: " << name << ": " << reason << "\n";
  }
  return counts;
}

/// All that has kernels runs and is right, but for the cases that are left out.
void expect_all_pass(const OnnxCaseCounts& counts, int least) {
  const int passed = static_cast<int>(counts.passed.size());
  EXPECT_THAT(counts.failures, IsEmpty());
  EXPECT_EQ(passed + counts.left_out_of_known, counts.of_known_operations);
  EXPECT_GE(passed, least);
  for (const std::string_view operation : onnx_operations()) {
    EXPECT_THAT(counts.unknown_operations, Not(Contains(Key(std::string(operation)))));
  }
}

// Left out are random numbers, strings as types of casts, training, and inputs that do not have the
// shape that their model says.
TEST(OnnxCases, Node) {
  const OnnxCaseCounts counts = run_and_print("node");
  expect_all_pass(counts, 830);
  EXPECT_LE(counts.left_out_of_known, 12);
}

TEST(OnnxCases, Simple) { expect_all_pass(run_and_print("simple"), 7); }

TEST(OnnxCases, PytorchConverted) {
  const OnnxCaseCounts counts = run_and_print("pytorch-converted");
  expect_all_pass(counts, 82);
  EXPECT_EQ(counts.left_out_of_known, 0);
  EXPECT_EQ(counts.of_known_operations, counts.cases);
}

TEST(OnnxCases, PytorchOperator) {
  const OnnxCaseCounts counts = run_and_print("pytorch-operator");
  expect_all_pass(counts, 35);
  EXPECT_EQ(counts.left_out_of_known, 0);
  EXPECT_EQ(counts.of_known_operations, counts.cases);
}

TEST(OnnxCases, NonePassesWithAnotherExpectation) {
  for (const char* folder : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    const OnnxCaseCounts counts =
        run_onnx_cases(test_data / folder, {usual_tolerance, Expectations::spoiled});
    EXPECT_THAT(counts.passed, IsEmpty()) << folder;
    EXPECT_GT(counts.failures.size(), 5U) << folder;
  }
}

TEST(OnnxCases, EveryOperationThatModelsMayHaveHasAKernel) {
  EXPECT_EQ(reference_operations(), onnx_operations());
}

}  // namespace
}  // namespace braid
