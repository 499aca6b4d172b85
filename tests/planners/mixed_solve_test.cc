#include "braid/planners/mixed_solve.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/planners/mixed_bounds.h"

#include "planners/tiny_job.h"

namespace braid {
namespace {

using testing::pick;
using Used = std::vector<std::int32_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double share(std::mt19937_64& random) { return static_cast<double>(random() % 1000) / 1000; }

/// A number that depends on all of these and on nothing else.
double scramble(std::uint64_t seed, std::span<const std::int32_t> used, std::int32_t a,
                std::int32_t b) {
  std::uint64_t hash = seed;
  for (const std::int32_t value : used) hash = hash * 1'000'003 + static_cast<std::uint64_t>(value);
  std::mt19937_64 random(hash * 31 + static_cast<std::uint64_t>(a * 64 + b));
  return share(random);
}

MixedProblem random_problem(std::uint64_t seed, int layers) {
  std::mt19937_64 random(seed);
  MixedProblem problem;
  problem.micro_batches = pick(random, 1, 9);
  const int kinds = pick(random, 1, 2);
  for (int k = 0; k < kinds; ++k) problem.capacity.push_back(pick(random, 1, 3));
  const int forms = pick(random, 1, 4);
  const double tight = pick(random, 0, 1) == 0 ? 1e9 : 0.7 * layers;
  for (int f = 0; f < forms; ++f) {
    MixedForm& form = problem.forms.emplace_back();
    for (int k = 0; k < kinds; ++k) form.takes.push_back(pick(random, 0, 2));
    if (std::all_of(form.takes.begin(), form.takes.end(), [](int n) { return n == 0; })) {
      form.takes[0] = 1;
    }
    const double pace = 0.5 + share(random);
    const int ways = pick(random, 1, 3);
    for (int w = 0; w < ways; ++w) {
      MixedWay& way = form.ways.emplace_back();
      way.saves_memory = w > 0;
      way.memory.available_bytes = tight;
      way.memory.per_dense_parameter = 1;
      for (int l = 0; l < layers; ++l) {
        ChainLayer layer;
        layer.forward_s = pace * (1 + l % 3);
        layer.backward_s = layer.forward_s * (2 + w);
        layer.dense_parameters = 0.5 + 0.25 * (l % 2);
        layer.stash_bytes = 0.5 / (1 + w);
        way.layers.push_back(layer);
      }
    }
  }
  problem.least_stages = pick(random, 1, 2);
  problem.most_stages = pick(random, 2, 4);
  problem.cut_classes = 2;
  for (int l = 0; l <= layers; ++l) problem.cut_class.push_back(l % 2);
  problem.allows = [seed](std::span<const std::int32_t> used, std::int32_t form) {
    return scramble(seed + 1, used, form, 0) < 0.9;
  };
  problem.handover_s = [seed](std::span<const std::int32_t> used, std::int32_t below,
                              std::int32_t above, std::int32_t kind) {
    return scramble(seed + 2 + static_cast<std::uint64_t>(kind), used, below, above);
  };
  problem.rates = [seed](std::span<const std::int32_t> used, std::int32_t form, std::int32_t way) {
    MixedRates rates;
    rates.gather.dense = way == 1 ? 0 : 4 * scramble(seed + 4, used, form, way);
    rates.reduce.dense = 5 * scramble(seed + 5, used, form, way);
    rates.optimizer.dense = scramble(seed + 6, used, form, way);
    rates.optimizer_s = scramble(seed + 7, used, form, way);
    if (way == 2) rates.backward.dense = scramble(seed + 8, used, form, way);
    return rates;
  };
  return problem;
}

/// All pipelines, stage by stage from the end, by the definition of the bound.
class BruteForce {
 public:
  explicit BruteForce(const MixedProblem& problem)
      : problem_(problem),
        forward_before_s_(problem.forms[0].ways[0].layers.size() + 1, 0),
        backward_before_s_(forward_before_s_) {
    for (std::size_t l = 0; l + 1 < forward_before_s_.size(); ++l) {
      double forward_s = kInfinity, backward_s = kInfinity;
      for (const MixedForm& form : problem.forms) {
        for (const MixedWay& way : form.ways) {
          forward_s = std::min(forward_s, way.layers[l].forward_s);
          backward_s = std::min(backward_s, way.layers[l].backward_s);
        }
      }
      forward_before_s_[l + 1] = forward_before_s_[l] + forward_s;
      backward_before_s_[l + 1] = backward_before_s_[l] + backward_s;
    }
  }

  double least_s() {
    const auto layers = static_cast<std::int32_t>(problem_.forms[0].ways[0].layers.size());
    add({}, Used(problem_.capacity.size(), 0), -1, layers, 0, 0, 0, 0);
    return best_s_;
  }

 private:
  void add(const Used& behind, const Used& used, std::int32_t below, std::int32_t right,
           double below_s, double behind_s, double excess_s, double end_s) {
    ++depth_;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(problem_.forms.size()); ++f) {
      const MixedForm& form = problem_.forms[static_cast<std::size_t>(f)];
      Used next = used;
      bool room = true;
      for (std::size_t k = 0; k < next.size(); ++k) {
        next[k] += form.takes[k];
        room = room && next[k] <= problem_.capacity[k];
      }
      if (!room || !problem_.allows(used, f)) continue;
      const double hop_s =
          below < 0 ? 0
                    : problem_.handover_s(behind, below, f,
                                          problem_.cut_class[static_cast<std::size_t>(right)]);
      for (std::int32_t left = right - 1; left >= 0; --left) {
        bool fast = false;
        for (std::size_t w = 0; w < form.ways.size(); ++w) {
          const MixedWay& way = form.ways[w];
          if (fast && way.saves_memory) break;
          RunSums sums;
          for (std::int32_t l = left; l < right; ++l)
            sums.add(way.layers[static_cast<std::size_t>(l)]);
          const auto in_flight =
              static_cast<double>(std::min<std::int64_t>(problem_.micro_batches, depth_));
          if (!fits(sums, in_flight, way.memory)) continue;
          fast = fast || !way.saves_memory;
          const MixedRates rates = problem_.rates(used, f, static_cast<std::int32_t>(w));
          const int n = right - left;
          const double backward_s =
              sums.backward_s +
              exposed_gradient_sync_s(rates.backward.dense * sums.dense_parameters, sums.backward_s,
                                      n);
          const double time_s = sums.forward_s + backward_s;
          const double start_s = below_s + 2 * hop_s;
          const double own_s = stage_excess_s(sums.forward_s, backward_s, start_s,
                                              behind_s + 2 * hop_s, depth_, problem_.micro_batches);
          const double worst_s = std::max(excess_s, own_s);
          const double tail_s =
              exposed_gradient_sync_s(rates.reduce.dense * sums.dense_parameters, backward_s, n) +
              rates.optimizer_s + rates.optimizer.dense * sums.dense_parameters;
          const double head_s = exposed_gradient_sync_s(rates.gather.dense * sums.dense_parameters,
                                                        sums.forward_s, n);
          const auto before = static_cast<std::size_t>(left);
          const double last_s =
              std::max(end_s, std::max(head_s, forward_before_s_[before]) + start_s + time_s +
                                  own_s + std::max(tail_s, backward_before_s_[before]));
          if (left > 0 && depth_ < problem_.most_stages) {
            add(used, next, f, left, start_s + time_s, time_s, worst_s, last_s);
          }
          if (left == 0 && depth_ >= problem_.least_stages) {
            best_s_ =
                std::min(best_s_, std::max(last_s, head_s + start_s + time_s + tail_s + worst_s));
          }
        }
      }
    }
    --depth_;
  }

  const MixedProblem& problem_;
  std::vector<double> forward_before_s_, backward_before_s_;
  std::int64_t depth_ = 0;
  double best_s_ = kInfinity;
};

TEST(MixedPipeline, IsTheBestOfAll) {
  int found = 0, proven = 0, none = 0, bound_by_memory = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const MixedProblem problem = random_problem(seed * 100, pick(random, 1, 5));
    const double expected_s = BruteForce(problem).least_s();
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
    proven += solution.bound_s >= best_s * (1 - 1e-9) ? 1 : 0;
    ASSERT_LE(quick_bound_s(problem), expected_s * (1 + 1e-12)) << seed;
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(proven, found - found / 20);
  EXPECT_GT(none, 50);
  EXPECT_GT(bound_by_memory, 200);
}

TEST(MixedPipeline, ACutoffHidesOnlyWhatIsNotBelowIt) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const MixedProblem problem = random_problem(seed * 100, 4);
    const double best_s = BruteForce(problem).least_s();
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

TEST(MixedPipeline, ABudgetLeavesABound) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const MixedProblem problem = random_problem(seed * 100, 4);
    const double best_s = BruteForce(problem).least_s();
    const auto nothing = [](const MixedPipeline& pipeline) { return pipeline.bound_s(); };
    const MixedSolution solution = solve_mixed(problem, kInfinity, 20, nothing);
    EXPECT_LE(solution.bound_s, best_s * (1 + 1e-12)) << seed;
  }
}

}  // namespace
}  // namespace braid
