#include "braid/dataflow/workload_graphs.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "dataflow/reference_setup.h"

namespace braid {
namespace {

// The published inputs, which have single-precision sizes and other names.
void expect_same(const KernelGraph& mine, const KernelGraph& published) {
  ASSERT_EQ(mine.kernels.size(), published.kernels.size());
  for (std::size_t i = 0; i < mine.kernels.size(); ++i) {
    const Kernel& a = mine.kernels[i];
    const Kernel& b = published.kernels[i];
    const std::string name = a.name + " " + b.name;
    EXPECT_EQ(a.matrix, b.matrix) << name;
    EXPECT_EQ(a.backward, b.backward) << name;
    EXPECT_EQ(a.weights, b.weights) << name;
    EXPECT_EQ(a.outer, b.outer) << name;
    EXPECT_EQ(a.m, b.m) << name;
    EXPECT_EQ(a.k, b.k) << name;
    EXPECT_EQ(a.n, b.n) << name;
    EXPECT_EQ(a.tiled, b.tiled) << name;
    EXPECT_NEAR(a.dram_bytes, b.dram_bytes, 1e-6 * b.dram_bytes) << name;
    // Given for elementwise kernels of two inputs as well, where it says nothing.
    if (a.matrix) {
      EXPECT_NEAR(a.first_input_bytes, b.first_input_bytes, 1e-6 * b.first_input_bytes) << name;
    }
    ASSERT_EQ(a.messages.size(), b.messages.size()) << name;
    for (std::size_t m = 0; m < a.messages.size(); ++m) {
      EXPECT_EQ(a.messages[m].transfer, b.messages[m].transfer) << name;
      EXPECT_NEAR(a.messages[m].bytes, b.messages[m].bytes, 1e-6 * b.messages[m].bytes) << name;
    }
  }
  const auto sorted = [](std::vector<KernelTensor> tensors) {
    std::sort(tensors.begin(), tensors.end(), [](const KernelTensor& a, const KernelTensor& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    return tensors;
  };
  EXPECT_EQ(sorted(mine.tensors), sorted(published.tensors));
  EXPECT_EQ(mine.word_bytes, published.word_bytes);
}

TEST(WorkloadGraphs, TransformerIsThePublishedOne) {
  const auto setup = reference_setup("gpt3_1t_h100_2dtorus_hbm_nvlink");
  if (!setup) GTEST_SKIP() << "reference data not present";
  expect_same(transformer_layer({25600, 160, 102400, 2048, true, 2}), setup->graph);
}

TEST(WorkloadGraphs, ForwardIsThePublishedOne) {
  const auto setup = reference_setup("gpt3_175b_sn10");
  if (!setup) GTEST_SKIP() << "reference data not present";
  const KernelGraph mine = transformer_layer({12288, 96, 49152, 2048, false, 2});
  ASSERT_EQ(mine.kernels.size(), setup->graph.kernels.size());
  double flops = 0, published = 0;
  for (std::size_t i = 0; i < mine.kernels.size(); ++i) {
    flops += kernel_flops(mine.kernels[i]);
    published += kernel_flops(setup->graph.kernels[i]);
  }
  EXPECT_DOUBLE_EQ(flops, published);
}

TEST(WorkloadGraphs, RecommendationIsThePublishedOne) {
  const auto setup = reference_setup("dlrm_zionex_A");
  if (!setup) GTEST_SKIP() << "reference data not present";
  expect_same(recommendation_layers({5, 15, 3375, 600, 93, 15, 512, 128, 2}), setup->graph);
}

TEST(WorkloadGraphs, LinpackIsThePublishedOne) {
  const auto setup = reference_setup("hpl_selene");
  if (!setup) GTEST_SKIP() << "reference data not present";
  expect_same(linpack_iterations({262144, 4096, 64, 8}), setup->graph);
}

TEST(WorkloadGraphs, FourierIsThePublishedOne) {
  const auto setup = reference_setup("fft_fp32_1024");
  if (!setup) GTEST_SKIP() << "reference data not present";
  expect_same(fourier_steps({1073740000000.0, 2, 4}), setup->graph);
}

// 2 operations for each parameter and token forward, three times that in training; attention's
// scores and their use on top (Narayanan et al. 2021, section 3).
TEST(WorkloadGraphs, TransformerHasTheOperationsOfAClosedForm) {
  const double h = 512, s = 128, parameters = 12 * h * h;
  const double products = 2 * parameters * s + 4 * s * s * h;
  for (const bool training : {false, true}) {
    const KernelGraph graph = transformer_layer({512, 8, 2048, 128, training, 2});
    double flops = 0;
    for (const Kernel& kernel : graph.kernels) flops += kernel.matrix ? kernel_flops(kernel) : 0;
    EXPECT_DOUBLE_EQ(flops, (training ? 3 : 1) * products);
    check_kernel_graph(graph, "graph");
  }
}

}  // namespace
}  // namespace braid
