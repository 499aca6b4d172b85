#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/bounds.h"
#include "braid/planners/mixed/depth_first.h"
#include "braid/planners/mixed/solve.h"
#include "braid/search/one_f_one_b_turns.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using test::pick;
using Used = std::vector<std::int32_t>;

double share(std::mt19937_64& random) { return static_cast<double>(random() % 1000) / 1000; }

/// A number that depends on all of these and on nothing else.
double scramble(std::uint64_t seed, std::span<const std::int32_t> used, std::int32_t a,
                std::int32_t b) {
  std::uint64_t hash = seed;
  for (const std::int32_t value : used) hash = hash * 1'000'003 + static_cast<std::uint64_t>(value);
  std::mt19937_64 random(hash * 31 + static_cast<std::uint64_t>(a * 64 + b));
  return share(random);
}

enum class Exchange : std::uint8_t { none, of_first, of_both };

/// Random numbers by seed; of exchanges also the least for any configs on the same devices, if
/// wanted.
class RandomCosts final : public MixedCosts {
 public:
  RandomCosts(std::uint64_t seed, const MixedProblem& problem, Exchange exchange,
              bool knows_least = true)
      : seed_(seed), configs_(problem.configs), exchange_(exchange), knows_least_(knows_least) {}

  bool allows(Used used, std::int32_t config) override {
    return scramble(seed_ + 1, used, config, 0) < 0.9;
  }
  double handover_s(Used used, std::int32_t below, std::int32_t above, std::int32_t kind) override {
    return scramble(seed_ + 2 + static_cast<std::uint64_t>(kind), used, below, above);
  }
  SyncRates rates(Used used, std::int32_t config, std::int32_t variant) override {
    SyncRates rates;
    rates.gather.dense = variant == 1 ? 0 : 4 * scramble(seed_ + 4, used, config, variant);
    rates.reduce.dense = 5 * scramble(seed_ + 5, used, config, variant);
    rates.optimizer.dense = scramble(seed_ + 6, used, config, variant);
    rates.optimizer_s = scramble(seed_ + 7, used, config, variant);
    if (variant == 2) rates.backward.dense = scramble(seed_ + 8, used, config, variant);
    return rates;
  }
  bool exchanges() const override { return exchange_ != Exchange::none; }
  double exchange_s(Used used, std::int32_t first, std::int32_t variant,
                    std::int32_t last) override {
    if (exchange_ == Exchange::none) return 0;
    if (exchange_ == Exchange::of_first) return 2 * scramble(seed_ + 9, used, first, variant);
    const double scale = seed_ % 3 == 0 ? 1 : 10;
    return scale *
           (scramble(seed_ + 9, used, first, variant) + scramble(seed_ + 10, used, last, first));
  }
  double least_exchange_s(Used used, std::int32_t first, std::int32_t last) override {
    if (!knows_least_ || exchange_ == Exchange::none) return 0;
    const auto config = [&](std::int32_t number) -> const MixedConfig& {
      return configs_[static_cast<std::size_t>(number)];
    };
    double least_s = kInfinity;
    for (std::int32_t a = 0; a < std::ssize(configs_); ++a) {
      for (std::int32_t b = 0; b < std::ssize(configs_); ++b) {
        if (config(a).takes != config(first).takes || config(b).takes != config(last).takes)
          continue;
        for (std::int32_t variant = 0; variant < std::ssize(config(a).variants); ++variant) {
          least_s = std::min(least_s, exchange_s(used, a, variant, b));
        }
      }
    }
    return least_s;
  }

 private:
  std::uint64_t seed_;
  std::vector<MixedConfig> configs_;
  Exchange exchange_;
  bool knows_least_;
};

/// A problem with its layers and costs.
struct Random {
  MixedProblem problem;
  std::deque<std::vector<ChainLayer>> layers;
  std::unique_ptr<RandomCosts> costs;

  void set_costs(std::uint64_t seed, Exchange exchange, bool knows_least = true) {
    costs = std::make_unique<RandomCosts>(seed, problem, exchange, knows_least);
    problem.costs = costs.get();
  }
};

Random random_problem(std::uint64_t seed, int layers) {
  std::mt19937_64 random(seed);
  Random made;
  MixedProblem& problem = made.problem;
  problem.micro_batches = pick(random, 1, 9);
  const int kinds = pick(random, 1, 2);
  for (int k = 0; k < kinds; ++k) problem.capacity.push_back(pick(random, 1, 3));
  const int configs = pick(random, 1, 4);
  const double tight = pick(random, 0, 1) == 0 ? 1e9 : 0.7 * layers;
  for (int f = 0; f < configs; ++f) {
    MixedConfig& config = problem.configs.emplace_back();
    for (int k = 0; k < kinds; ++k) config.takes.push_back(pick(random, 0, 2));
    if (std::all_of(config.takes.begin(), config.takes.end(), [](int n) { return n == 0; })) {
      config.takes[0] = 1;
    }
    const double pace = 0.5 + share(random);
    const int variants = pick(random, 1, 3);
    for (int w = 0; w < variants; ++w) {
      MixedVariant& variant = config.variants.emplace_back();
      variant.saves_memory = w > 0;
      variant.memory.available_bytes = tight;
      variant.memory.per_dense_parameter = 1;
      std::vector<ChainLayer>& kept = made.layers.emplace_back();
      for (int l = 0; l < layers; ++l) {
        ChainLayer layer;
        layer.forward_s = pace * (1 + l % 3);
        layer.backward_s = layer.forward_s * (2 + w);
        layer.dense_parameters = 0.5 + 0.25 * (l % 2);
        layer.stash_bytes = 0.5 / (1 + w);
        kept.push_back(layer);
      }
      variant.layers = kept;
    }
  }
  problem.least_stages = pick(random, 1, 2);
  problem.most_stages = pick(random, 2, 4);
  problem.cut_classes = 2;
  for (int l = 0; l <= layers; ++l) problem.cut_class.push_back(l % 2);
  made.set_costs(seed, seed % 800 == 0 ? Exchange::of_first : Exchange::none);
  return made;
}

/// All pipelines, stage by stage from the end, by the definition of the bound.
class MixedBruteForce {
 public:
  explicit MixedBruteForce(const MixedProblem& problem)
      : problem_(problem),
        forward_before_s_(problem.configs[0].variants[0].layers.size() + 1, 0),
        backward_before_s_(forward_before_s_) {
    for (std::size_t l = 0; l + 1 < forward_before_s_.size(); ++l) {
      double forward_s = kInfinity, backward_s = kInfinity;
      for (const MixedConfig& config : problem.configs) {
        for (const MixedVariant& variant : config.variants) {
          forward_s = std::min(forward_s, variant.layers[l].forward_s);
          backward_s = std::min(backward_s, variant.layers[l].backward_s);
        }
      }
      forward_before_s_[l + 1] = forward_before_s_[l] + forward_s;
      backward_before_s_[l + 1] = backward_before_s_[l] + backward_s;
    }
  }

  double least_s() {
    const auto layers = static_cast<std::int32_t>(problem_.configs[0].variants[0].layers.size());
    add(Used(problem_.capacity.size(), 0), -1, layers);
    return best_s_;
  }

 private:
  struct Stage {
    double forward_s = 0, backward_s = 0, head_s = 0, tail_s = 0;
    double hop_s = 0;  ///< To the stage behind.
    std::int32_t left = 0;
    std::int32_t config = 0, variant = 0;
    Used used;
    double time_s() const { return forward_s + backward_s; }
  };

  void add(const Used& used, std::int32_t below, std::int32_t right) {
    if (right == 0 && std::ssize(stages_) >= problem_.least_stages) {
      Stage& first = stages_.back();
      const double tail_s = first.tail_s;
      if (stages_.size() > 1 && problem_.costs->exchanges()) {
        first.tail_s += problem_.costs->exchange_s(first.used, first.config, first.variant,
                                                   stages_.front().config);
      }
      best_s_ = std::min(best_s_, bound_s());
      first.tail_s = tail_s;
    }
    if (right == 0 || std::ssize(stages_) == problem_.most_stages) return;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(problem_.configs.size()); ++f) {
      const MixedConfig& config = problem_.configs[static_cast<std::size_t>(f)];
      Used next = used;
      bool room = true;
      for (std::size_t k = 0; k < next.size(); ++k) {
        next[k] += config.takes[k];
        room = room && next[k] <= problem_.capacity[k];
      }
      if (!room || !problem_.costs->allows(used, f)) continue;
      Stage stage;
      stage.used = used;
      if (below >= 0) {
        stage.hop_s = problem_.costs->handover_s(
            stages_.back().used, below, f, problem_.cut_class[static_cast<std::size_t>(right)]);
      }
      for (stage.left = right - 1; stage.left >= 0; --stage.left) add_ways(stage, f, right, next);
    }
  }

  void add_ways(Stage& stage, std::int32_t f, std::int32_t right, const Used& next) {
    const MixedConfig& config = problem_.configs[static_cast<std::size_t>(f)];
    bool fast = false;
    for (std::size_t w = 0; w < config.variants.size(); ++w) {
      const MixedVariant& variant = config.variants[w];
      if (fast && variant.saves_memory) break;
      RunSums sums;
      for (std::int32_t l = stage.left; l < right; ++l) {
        sums.add(variant.layers[static_cast<std::size_t>(l)]);
      }
      const auto in_flight = static_cast<double>(
          std::min<std::int64_t>(problem_.micro_batches, std::ssize(stages_) + 1));
      if (!fits(sums, in_flight, variant.memory)) continue;
      fast = fast || !variant.saves_memory;
      const SyncRates rates = problem_.costs->rates(stage.used, f, static_cast<std::int32_t>(w));
      const int n = right - stage.left;
      const double parameters = sums.dense_parameters;
      const auto exposed_s = [&](const PerParameter& rate, double pass_s) {
        return exposed_gradient_sync_s(rate.dense * parameters, pass_s, n);
      };
      stage.config = f;
      stage.variant = static_cast<std::int32_t>(w);
      stage.forward_s = sums.forward_s;
      stage.backward_s = sums.backward_s + exposed_s(rates.backward, sums.backward_s);
      stage.head_s = exposed_s(rates.gather, stage.forward_s);
      stage.tail_s = exposed_s(rates.reduce, stage.backward_s) + rates.optimizer_s +
                     rates.optimizer.dense * parameters;
      stages_.push_back(stage);
      add(next, f, stage.left);
      stages_.pop_back();
    }
  }

  /// Of stages_, the last first. Whatever stage a path turns at, it may start at the head of any
  /// stage from there on or in front of it, and end at the tail of any.
  double bound_s() const {
    const auto m = problem_.micro_batches;
    const std::size_t n = stages_.size();
    double longest_s = 0;
    std::vector<double> below_s(n + 1, 0), turning_s(n, 0);
    double excess_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Stage& stage = stages_[i];
      const double start_s = below_s[i] + 2 * stage.hop_s;
      const double next_s = i > 0 ? stages_[i - 1].time_s() + 2 * stage.hop_s : 0;
      const auto depth = static_cast<std::int64_t>(i) + 1;
      below_s[i + 1] = start_s + stage.time_s();
      const OneFOneBTurns turns = OneFOneBTurns::of(depth, m);
      turning_s[i] = turns.turning_excess_s(stage.time_s(), start_s, next_s);
      const double own_s = turns.excess_s(stage.forward_s, stage.backward_s, start_s, next_s);
      excess_s = std::max(excess_s, own_s);
      const auto left = static_cast<std::size_t>(stage.left);
      longest_s =
          std::max(longest_s, std::max(forward_before_s_[left], stage.head_s) + below_s[i + 1] +
                                  own_s + std::max(backward_before_s_[left], stage.tail_s));
    }
    const Stage& first = stages_.back();
    longest_s = std::max(longest_s, first.head_s + below_s[n] + excess_s + first.tail_s);
    // From a head to a tail by way of every turn behind, seen from each stage `front`.
    for (std::size_t front = 0; front < n; ++front) {
      const auto left = static_cast<std::size_t>(stages_[front].left);
      double late_s = forward_before_s_[left], rise_s = backward_before_s_[left];
      double peak_s = 0, down_s = 0, up_s = 0;
      for (std::size_t i = front + 1; i-- > 0;) {
        late_s = std::max({late_s, stages_[i].head_s - down_s,
                           forward_before_s_[static_cast<std::size_t>(stages_[i].left)] - down_s});
        rise_s = std::max({rise_s, stages_[i].tail_s - up_s,
                           backward_before_s_[static_cast<std::size_t>(stages_[i].left)] - up_s});
        peak_s = std::max(peak_s, turning_s[i]);
        down_s += stages_[i].forward_s + stages_[i].hop_s;
        up_s += stages_[i].backward_s + stages_[i].hop_s;
      }
      longest_s = std::max(longest_s, late_s + below_s[front + 1] + peak_s + rise_s);
    }
    return longest_s;
  }

  const MixedProblem& problem_;
  std::vector<double> forward_before_s_, backward_before_s_;
  std::vector<Stage> stages_;
  double best_s_ = kInfinity;
};

/// Two thousand problems a shard.
class MixedPipelines : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MixedPipelines, AreTheBestOfAll) {
  int found = 0, best = 0, proven = 0, none = 0, bound_by_memory = 0;
  for (std::uint64_t seed = 2000 * GetParam(); seed < 2000 * (GetParam() + 1); ++seed) {
    std::mt19937_64 random(seed);
    const Random made = random_problem(seed * 100, pick(random, 1, 5));
    const MixedProblem& problem = made.problem;
    const double expected_s = MixedBruteForce(problem).least_s();
    double best_s = kInfinity;
    const MixedSolution solution =
        solve_mixed(problem, kInfinity, std::int64_t{1} << 40, [&](const MixedPipeline& pipeline) {
          best_s = std::min(best_s, pipeline.bound_s());
          return best_s;
        });
    if (expected_s == kInfinity) {
      EXPECT_EQ(best_s, kInfinity) << seed;
      ++none;
      continue;
    }
    ++found;
    bound_by_memory += solution.memory_bound ? 1 : 0;
    // Where a stage in the middle ends last, the first passes may stop early.
    EXPECT_GE(best_s, expected_s * (1 - 1e-9)) << seed;
    EXPECT_LE(solution.bound_s, expected_s * (1 + 1e-9)) << seed;
    best += best_s <= expected_s * (1 + 1e-9) ? 1 : 0;
    proven += solution.bound_s >= best_s * (1 - 1e-9) ? 1 : 0;
    ASSERT_LE(quick_bound_s(problem), expected_s * (1 + 1e-12)) << seed;
    double walked_s = kInfinity;
    constexpr std::int64_t kAll = std::int64_t{1} << 40;
    const auto visit = [&](const MixedPipeline& pipeline) {
      walked_s = std::min(walked_s, pipeline.bound_s());
      return walked_s;
    };
    EXPECT_EQ(search_depth_first(problem, kInfinity, {kAll, kAll}, visit).bound_s, walked_s)
        << seed;
    EXPECT_NEAR(walked_s, expected_s, expected_s * 1e-9) << seed;
    EXPECT_LE(search_depth_first(problem, kInfinity, {10, 1}, visit).bound_s,
              expected_s * (1 + 1e-9))
        << seed;
  }
  RecordProperty("found", found);
  RecordProperty("best", best);
  RecordProperty("proven", proven);
  EXPECT_GT(found, 1000);
  EXPECT_GT(best, found - found / 100);
  EXPECT_GT(proven, found - found / 20);
  EXPECT_GT(none, 50);
  EXPECT_GT(bound_by_memory, 200);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MixedPipelines, ::testing::Range<std::uint64_t>(0, 5));

TEST(MixedPipeline, ACutoffHidesOnlyWhatIsNotBelowIt) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Random made = random_problem(seed * 100, 4);
    const MixedProblem& problem = made.problem;
    const double best_s = MixedBruteForce(problem).least_s();
    if (best_s == kInfinity) continue;
    for (const double factor : {0.5, 0.999, 1.5}) {
      bool below = false;
      const MixedSolution solution = solve_mixed(
          problem, factor * best_s, std::int64_t{1} << 40, [&](const MixedPipeline& pipeline) {
            below = below || pipeline.bound_s() < factor * best_s;
            return factor * best_s;
          });
      EXPECT_EQ(below, factor > 1) << seed;
      EXPECT_LE(solution.bound_s, std::min(factor, 1.0) * best_s * (1 + 1e-9)) << seed;
      EXPECT_TRUE(factor > 1 || solution.bound_s >= factor * best_s * (1 - 1e-9)) << seed;
    }
  }
}

TEST(MixedPipeline, AnExchangeThatTheLastStageDecidesIsBounded) {
  int found = 0, best = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random made = random_problem(seed * 100, 4);
    made.set_costs(seed, Exchange::of_both, seed % 2 == 0);
    const MixedProblem& problem = made.problem;
    const double expected_s = MixedBruteForce(problem).least_s();
    if (expected_s == kInfinity) continue;
    double best_s = kInfinity;
    const MixedSolution solution =
        solve_mixed(problem, kInfinity, std::int64_t{1} << 40, [&](const MixedPipeline& pipeline) {
          best_s = std::min(best_s, pipeline.bound_s());
          return best_s;
        });
    EXPECT_GE(best_s, expected_s * (1 - 1e-9)) << seed;
    EXPECT_LE(solution.bound_s, expected_s * (1 + 1e-9)) << seed;
    ++found;
    best += best_s <= expected_s * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(best, found / 2);
}

TEST(MixedPipeline, ABudgetLeavesABound) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Random made = random_problem(seed * 100, 4);
    const MixedProblem& problem = made.problem;
    const double best_s = MixedBruteForce(problem).least_s();
    const auto nothing = [](const MixedPipeline& pipeline) { return pipeline.bound_s(); };
    const MixedSolution solution = solve_mixed(problem, kInfinity, 20, nothing);
    EXPECT_LE(solution.bound_s, best_s * (1 + 1e-12)) << seed;
    EXPECT_TRUE(solution.spent || solution.steps <= 20) << seed;
    EXPECT_FALSE(solve_mixed(problem, kInfinity, std::int64_t{1} << 40, nothing).spent) << seed;
  }
}

}  // namespace
}  // namespace braid
