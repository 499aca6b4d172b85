#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/run/run_operations.h"
#include "braid/run/torch/torch_training.h"

namespace braid::test {
namespace {

TEST(RunOperations, WhatIsAcceptedIsWhatIsComputed) {
  const std::vector<std::string> accepted(run_operations().begin(), run_operations().end());
  EXPECT_EQ(accepted, computed_operations());
}

}  // namespace
}  // namespace braid::test
