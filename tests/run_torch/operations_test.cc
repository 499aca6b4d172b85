#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "braid/base/loaded_blas.h"
#include "braid/run/run_operations.h"
#include "braid/run/torch/torch_training.h"

namespace braid::test {
namespace {

TEST(RunOperations, WhatIsAcceptedIsWhatIsComputed) {
  const std::vector<std::string> accepted(run_operations().begin(), run_operations().end());
  EXPECT_EQ(accepted, computed_operations());
}

TEST(TorchThreads, AreThoseOfTheLoadedBlas) {
  const LoadedBlas blas = loaded_blas();
  EXPECT_NE(blas.name, "");
  EXPECT_EQ(blas.is_reference, blas.name.find("libblas.so") != std::string::npos);
  const auto threads =
      reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (threads == nullptr) GTEST_SKIP() << "skipped: libtorch computes by " << blas.name;
  for (const int count : {2, 1}) {
    set_torch_threads(count);
    EXPECT_EQ(threads(), count);
  }
}

}  // namespace
}  // namespace braid::test
