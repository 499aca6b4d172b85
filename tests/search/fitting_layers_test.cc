#include "braid/search/fitting_layers.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// The least left end by trying all.
std::int32_t first_by_trying(const std::vector<ChainLayer>& layers, std::size_t right,
                             const MemoryForm& form, double in_flight) {
  for (std::size_t left = 0; left < right; ++left) {
    RunSums sums;
    for (std::size_t l = left; l < right; ++l) sums.add(layers[l]);
    if (fits(sums, in_flight, form)) return static_cast<std::int32_t>(left);
  }
  return static_cast<std::int32_t>(right);
}

// Figures are whole numbers, so that sums do not depend on their order.
TEST(FittingLayers, AreThoseThatFitBothMemoriesTogether) {
  std::mt19937 random(5);
  const auto draw = [&](int most) {
    return static_cast<double>(std::uniform_int_distribution(0, most)(random));
  };
  int limited_by_host = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<ChainLayer> layers(1 + random() % 12);
    for (ChainLayer& layer : layers) {
      layer.dense_parameters = draw(9);
      layer.expert_parameters = draw(3);
      layer.stash_bytes = 10 + draw(20);
      layer.offloaded_bytes = random() % 2 == 0 ? draw(10) : 0;
      layer.working_bytes = draw(30);
      layer.fixed_bytes = draw(5);
      layer.weight_shapes = random() % 32;
    }
    MemoryForm form;
    form.per_dense_parameter = 1 + draw(16);
    form.per_expert_parameter = 1 + draw(16);
    form.per_largest_layer_parameter = draw(4);
    form.host_per_dense_parameter = draw(4);
    form.host_per_expert_parameter = draw(4);
    form.available_bytes = 20 + draw(900);
    const double in_flight = 1 + draw(5);
    const std::vector<double> placeholders = {draw(40), draw(40), draw(40), draw(40), draw(40)};
    if (random() % 2 == 0) form.placeholder_bytes = &placeholders;
    MemoryForm without_host = form;
    if (random() % 2 == 0) form.host_available_bytes = draw(300);
    const std::vector<std::int32_t> first = first_fitting_layers(layers, form, in_flight);
    ASSERT_EQ(first.size(), layers.size() + 1);
    for (std::size_t right = 1; right <= layers.size(); ++right) {
      ASSERT_EQ(first[right], first_by_trying(layers, right, form, in_flight));
    }
    if (first != first_fitting_layers(layers, without_host, in_flight)) ++limited_by_host;
  }
  EXPECT_GT(limited_by_host, 300);
}

}  // namespace
}  // namespace braid
