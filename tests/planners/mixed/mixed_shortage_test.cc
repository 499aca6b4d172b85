#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/shortage.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;
using Used = std::vector<std::int32_t>;

/// Stages may lie at every place of so many; nothing has a price.
class SomePlaces final : public MixedCosts {
 public:
  explicit SomePlaces(std::int32_t of = 1) : of_(of) {}
  bool allows(Used used, std::int32_t config) override { return (used[0] + config) % of_ == 0; }
  double handover_s(Used, std::int32_t, std::int32_t, std::int32_t) override { return 0; }
  SyncRates rates(Used, std::int32_t, std::int32_t) override { return {}; }

 private:
  std::int32_t of_;
};

using KeptLayers = std::deque<std::vector<ChainLayer>>;

/// Layers of different sizes, which are kept there, on two kinds of devices of different memory.
MixedProblem random_problem(std::mt19937_64& random, KeptLayers& kept) {
  MixedProblem problem;
  const int layers = pick(random, 1, 6);
  problem.micro_batches = pick(random, 1, 4);
  problem.capacity = {pick(random, 1, 3), pick(random, 1, 3)};
  problem.cut_class.assign(static_cast<std::size_t>(layers) + 1, 0);
  problem.least_stages = pick(random, 1, 2);
  problem.most_stages = pick(random, 2, 4);
  for (int f = pick(random, 1, 4); f > 0; --f) {
    MixedConfig& config = problem.configs.emplace_back();
    config.takes = {pick(random, 0, 2), pick(random, 0, 1)};
    if (config.takes[0] + config.takes[1] == 0) config.takes[0] = 1;
    for (int w = pick(random, 1, 2); w > 0; --w) {
      MixedVariant& variant = config.variants.emplace_back();
      variant.memory.available_bytes = pick(random, 1, 10);
      variant.memory.per_dense_parameter = pick(random, 1, 3);
      variant.memory.per_largest_layer_parameter = pick(random, 0, 1);
      for (ChainLayer& layer : kept.emplace_back(static_cast<std::size_t>(layers))) {
        layer.dense_parameters = pick(random, 1, 20);
        layer.stash_bytes = pick(random, 0, 5);
        layer.working_bytes = pick(random, 0, 5);
      }
      variant.layers = kept.back();
    }
  }
  static SomePlaces every, every_second(2);
  problem.costs = pick(random, 0, 3) == 0 ? &every_second : &every;
  return problem;
}

/// The least over all pipelines of what its stage that lacks most lacks.
double least_missing(const MixedProblem& problem, const Used& used, std::int32_t right,
                     std::int64_t depth, double missing) {
  if (right == 0) return depth > problem.least_stages ? missing : kInfinity;
  double least = kInfinity;
  if (depth > problem.most_stages) return least;
  for (std::size_t f = 0; f < problem.configs.size(); ++f) {
    Used next = used;
    bool room = problem.costs->allows(used, static_cast<std::int32_t>(f));
    for (std::size_t k = 0; k < next.size(); ++k) {
      next[k] += problem.configs[f].takes[k];
      room = room && next[k] <= problem.capacity[k];
    }
    if (!room) continue;
    for (const MixedVariant& variant : problem.configs[f].variants) {
      RunSums sums;
      for (std::int32_t left = right - 1; left >= 0; --left) {
        sums.add(variant.layers[static_cast<std::size_t>(left)]);
        const auto in_flight = static_cast<double>(std::min(problem.micro_batches, depth));
        const double here =
            device_bytes(sums, in_flight, variant.memory) - variant.memory.available_bytes;
        least =
            std::min(least, least_missing(problem, next, left, depth + 1, std::max(missing, here)));
      }
    }
  }
  return least;
}

TEST(MixedShortage, IsTheLeastOfAllPipelines) {
  int short_of = 0, none = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    KeptLayers kept;
    const MixedProblem problem = random_problem(random, kept);
    const auto layers = static_cast<std::int32_t>(problem.cut_class.size()) - 1;
    const double expected = least_missing(problem, {0, 0}, layers, 1, -kInfinity);
    std::int64_t steps_left = 1'000'000'000;
    const auto shortage = least_shortage(problem, kInfinity, steps_left);
    if (expected == kInfinity) {
      EXPECT_FALSE(shortage.has_value()) << seed;
      ++none;
      continue;
    }
    ASSERT_TRUE(shortage.has_value()) << seed;
    if (expected <= 1) {
      EXPECT_LE(shortage->missing_bytes(), 1 + 1e-9) << seed;
      continue;
    }
    ++short_of;
    EXPECT_GE(shortage->missing_bytes(), expected * (1 - 1e-9)) << seed;
    EXPECT_LE(shortage->missing_bytes(), expected * (1 + 2e-3)) << seed;
    // Nothing below what is known already.
    EXPECT_FALSE(least_shortage(problem, expected * (1 - 1e-6), steps_left).has_value()) << seed;
  }
  EXPECT_GT(short_of, 500);
  EXPECT_GT(none, 50);
}

}  // namespace
}  // namespace braid
