#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/planners/piper/levels.h"
#include "braid/planners/piper/variants.h"

#include "planners/piper_oracle.h"

namespace braid {
namespace {

/// Least slowest stage or superstage by trying every nested partition, degree and option, from the
/// recurrence of Appendix E with its own nested counts of micro-batches in flight.
class NestedBruteForce {
 public:
  explicit NestedBruteForce(const PiperProblem& problem) : p_(problem), n_(problem.nodes.size()) {}

  double solve() {
    const unsigned all = (1U << n_) - 1;
    split({p_.levels.size() - 1, p_.levels.back().devices, 1, 0, 0, 0}, all, 0,
          [&](std::int64_t, double slowest) { best_ = std::min(best_, slowest); });
    return best_;
  }

 private:
  /// (micro-batches in flight of the whole split's layers and all behind, slowest so far)
  using Then = std::function<void(std::int64_t, double)>;

  double share(std::int64_t dp) const {
    const auto batch = static_cast<double>(p_.micro_batches), d = static_cast<double>(dp);
    return p_.rules.split == PiperSplit::uneven ? std::ceil(batch / d) / batch : 1 / d;
  }
  double sync(std::int64_t all, std::int64_t here) const {
    const auto d = static_cast<double>(here);
    return 4 * (d - 1) / d *
           (p_.rules.sync == PiperSync::per_batch ? 1 / static_cast<double>(p_.micro_batches)
                                                  : share(all));
  }

  /// On one device of the level above.
  struct Inside {
    std::size_t level = 0;
    std::int64_t devices = 0;  ///< Left of this level.
    std::int64_t product = 1;  ///< Replicas of all levels above.
    std::int64_t behind = 0;   ///< Micro-batches in flight of what is behind.
    std::int64_t sum = 0;      ///< Replicas so far in all.
    double slowest = 0;        ///< Stage so far.
  };

  /// Places the layers `left` there, the last ones first; `done` are all behind them.
  void split(const Inside& at, unsigned left, unsigned done, const Then& then) {
    const auto& [level, devices, product, behind, sum, slowest] = at;
    if (left == 0) return then(behind, slowest);
    for (unsigned stage = left; stage != 0; stage = (stage - 1) & left) {
      if (p_.one_stage && stage != left) continue;
      const unsigned now = done | stage;
      const bool closed = std::all_of(p_.edges.begin(), p_.edges.end(), [&](const PiperEdge& e) {
        return (now >> e.source & 1) == 0 || (now >> e.target & 1) != 0;
      });
      if (!closed) continue;
      for (std::int64_t d = 1; d <= devices && product * d <= p_.most_dp; ++d) {
        const std::int64_t all = product * d;
        if (p_.rules.split == PiperSplit::even && p_.micro_batches % all != 0) continue;
        const auto rest = [&](std::int64_t used, std::int64_t then_behind, std::int64_t then_sum,
                              double time) {
          if (time >= best_ || used > at.devices || then_sum > p_.micro_batches) return;
          split({at.level, at.devices - used, at.product, then_behind, then_sum, time},
                left & ~stage, now, then);
        };
        if (level == 0) {
          if (all < p_.least_dp || all % p_.dp_multiple != 0) continue;
          for (int tp = 1; d * tp <= devices; ++tp) {
            const std::int64_t in_flight = (behind + d + d - 1) / d;
            const double time = stage_time(stage, tp, all, d, static_cast<double>(in_flight));
            rest(d * tp, behind + d, sum + all, std::max(slowest, time));
          }
          continue;
        }
        const double time = std::max(slowest, superstage_time(level, stage, all, d));
        if (time >= best_) continue;
        const std::int64_t inside = (behind + d - 1) / d;
        split({level - 1, p_.levels[level - 1].devices, all, inside, sum, time}, stage, done,
              [&](std::int64_t then_inside, double then_time) {
                const std::int64_t replicas = (then_inside - inside) * d;
                rest(d, at.behind + replicas, at.sum + replicas * at.product, then_time);
              });
      }
    }
  }

  double superstage_time(std::size_t level, unsigned stage, std::int64_t all, std::int64_t d) {
    const auto [known, is_new] = superstages_.try_emplace(stage);
    auto& [border, weights] = known->second;
    if (is_new) known->second = superstage_bytes(stage);
    return (share(all) * border + sync(all, d) * weights) / p_.levels[level].bandwidth_bytes;
  }

  /// Of the border and of the weights.
  std::pair<double, double> superstage_bytes(unsigned stage) const {
    PiperProblem bytes = p_;
    bytes.bandwidth_bytes = 1;
    double weights = 0;
    for (std::size_t v = 0; v < n_; ++v) {
      double least = kInfinity;
      for (const PiperDegree& degree : p_.nodes[v].degrees) {
        for (const PiperOption& option : degree.options) {
          least = std::min(least, option.parameter_bytes * degree.tp);
        }
      }
      if ((stage >> v & 1) != 0) weights += least;
      bytes.nodes[v].degrees = {{1, {PiperOption{}}}};
    }
    return {brute_force_stage_time(bytes, stage, 1, 1, 0), weights};
  }

  /// The oracle's flat stage of `all` replicas, less the synchronisation above this level.
  double stage_time(unsigned stage, int tp, std::int64_t all, std::int64_t d, double in_flight) {
    const auto [known, is_new] = stages_.try_emplace({stage, tp, all, d, in_flight});
    if (is_new) known->second = price(stage, tp, all, d, in_flight);
    return known->second;
  }

  double price(unsigned stage, int tp, std::int64_t all, std::int64_t d, double in_flight) const {
    PiperProblem here = p_;
    const double ratio = sync(all, all) > 0 ? sync(all, d) / sync(all, all) : 0;
    for (PiperNode& node : here.nodes) {
      for (PiperDegree& degree : node.degrees) {
        for (PiperOption& option : degree.options) option.parameter_bytes *= ratio;
      }
    }
    return brute_force_stage_time(here, stage, tp, all, in_flight);
  }

  const PiperProblem& p_;
  std::size_t n_;
  double best_ = kInfinity;
  std::map<unsigned, std::pair<double, double>> superstages_;
  std::map<std::tuple<unsigned, int, std::int64_t, std::int64_t, double>, double> stages_;
};

PiperProblem random_levels(std::mt19937_64& random, const RandomPiper& what, int most_levels) {
  const auto roll = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  PiperProblem problem = random_piper_problem(random, what);
  const int levels = roll(1, most_levels);
  problem.devices = 1;
  for (int l = 0; l < levels; ++l) {
    const std::int64_t devices = roll(1, problem.devices > 3 ? 2 : levels == 1 ? 5 : 3);
    // Bandwidth mostly falls from level to level.
    problem.levels.push_back({devices, roll(1, 6) / (roll(0, 3) == 0 ? 1.0 : l + 1.0)});
    problem.devices *= devices;
  }
  problem.bandwidth_bytes = problem.levels.front().bandwidth_bytes;
  problem.rules.knapsack = PiperKnapsack::exact;
  return problem;
}

/// Checks a solution against the definition: nesting, counts of devices, memory, times.
std::string nested_fault_of(const PiperProblem& problem, const PiperSolution& solution) {
  double slowest = 0;
  std::vector<std::int64_t> product(solution.stages.size(), 1);
  // Devices of each level in use within each superstage around, by (level, first stage).
  for (std::size_t level = problem.levels.size(); level-- > 1;) {
    std::vector<bool> covered(solution.stages.size(), false);
    for (PiperSuperstage superstage : solution.superstages) {
      if (superstage.level != static_cast<int>(level)) continue;
      const double time = superstage.time;
      price_piper_superstage(problem, solution.stages, superstage);
      if (std::abs(time - superstage.time) > 1e-9 * time) return "superstage time";
      slowest = std::max(slowest, time);
      for (int s = superstage.first; s < superstage.first + superstage.count; ++s) {
        const auto at = static_cast<std::size_t>(s);
        if (covered[at]) return "superstages overlap";
        covered[at] = true;
        product[at] *= superstage.dp;
        if (s > superstage.first && product[at] != product[at - 1]) return "not nested";
      }
      if (product[static_cast<std::size_t>(superstage.first)] != superstage.all_dp) return "all_dp";
    }
    if (std::count(covered.begin(), covered.end(), false) > 0) return "a stage without superstage";
  }
  std::int64_t suffix = 0;
  PiperStagePricer pricer(problem);
  for (std::size_t s = solution.stages.size(); s-- > 0;) {
    PiperStage stage = solution.stages[s];
    if (stage.dp != product[s] * stage.local_dp) return "replicas";
    if (stage.suffix != (suffix += stage.dp)) return "suffix";
    pricer.price(stage);
    if (stage != solution.stages[s]) return "stage";
    if (stage.memory_bytes > problem.memory_bytes * (1 + 1e-9)) return "memory";
    slowest = std::max(slowest, stage.time);
  }
  if (suffix > problem.micro_batches) return "micro-batches";
  // Devices of a level that each superstage around takes.
  const auto used = [&](std::size_t level, std::int32_t first, std::int32_t count) {
    std::int64_t devices = 0;
    if (level == 0) {
      for (int s = first; s < first + count; ++s) {
        const PiperStage& stage = solution.stages[static_cast<std::size_t>(s)];
        devices += stage.local_dp * stage.tp;
      }
    }
    for (const PiperSuperstage& inner : solution.superstages) {
      const bool inside = inner.first >= first && inner.first < first + count;
      if (inside && inner.level == static_cast<int>(level)) devices += inner.dp;
    }
    return devices;
  };
  const auto count = static_cast<std::int32_t>(solution.stages.size());
  const std::size_t top = problem.levels.size() - 1;
  if (used(top, 0, count) > problem.levels[top].devices) return "devices on top";
  for (const PiperSuperstage& outer : solution.superstages) {
    const auto level = static_cast<std::size_t>(outer.level - 1);
    if (used(level, outer.first, outer.count) > problem.levels[level].devices) return "devices";
  }
  return std::abs(slowest - solution.time) > 1e-9 * slowest ? "slowest" : "";
}

void expect_optimal(const PiperProblem& problem, const PiperSolution& solution, int number) {
  check_piper_problem(problem, "random");
  const double best = NestedBruteForce(problem).solve();
  if (best == kInfinity) {
    ASSERT_EQ(solution.status, Status::infeasible) << number;
    return;
  }
  ASSERT_EQ(solution.status, Status::optimal) << number;
  ASSERT_NEAR(solution.time, best, 1e-9 * best) << number;
  ASSERT_EQ(nested_fault_of(problem, solution), "") << number;
}

TEST(PiperLevels, AgreeWithBruteForce) {
  std::mt19937_64 random(41);
  int nested = 0, infeasible = 0;
  for (int i = 0; i < 4000; ++i) {
    const PiperProblem problem =
        random_levels(random, {.most_nodes = 3, .whole_numbers = i % 2 == 0}, 3);
    const PiperSolution solution = solve_piper(problem);
    expect_optimal(problem, solution, i);
    if (HasFatalFailure()) return;
    if (solution.stages.empty()) ++infeasible;
    nested += std::any_of(
                  solution.superstages.begin(), solution.superstages.end(),
                  [](const auto& superstage) { return superstage.dp > 1 && superstage.count > 1; })
                  ? 1
                  : 0;
  }
  EXPECT_GT(nested, 20);
  EXPECT_GT(infeasible, 100);
}

TEST(PiperLevels, AgreeWithBruteForceOnLargerGraphs) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 200; ++i) {
    const PiperProblem problem =
        random_levels(random, {.most_nodes = 4, .whole_numbers = false}, 2);
    expect_optimal(problem, solve_piper(problem), i);
    if (HasFatalFailure()) return;
  }
}

TEST(PiperLevels, OneLevelIsTheFlatPlanner) {
  std::mt19937_64 random(43);
  for (int i = 0; i < 500; ++i) {
    PiperProblem problem = random_piper_problem(random, {.most_nodes = 5, .most_devices = 8});
    const double flat = time_or_infinity(solve_piper(problem));
    problem.levels = {{problem.devices, problem.bandwidth_bytes}};
    const double one = time_or_infinity(solve_piper(problem));
    ASSERT_TRUE(flat == one || std::abs(flat - one) <= 1e-9 * flat) << i;
    // A level of a single device above adds nothing.
    problem.levels.push_back({1, 1e-3});
    const double more = time_or_infinity(solve_piper(problem));
    ASSERT_TRUE(one == more || std::abs(one - more) <= 1e-9 * one) << i;
  }
}

TEST(PiperLevels, MoreNeverHurtsAndLessNeverHelps) {
  std::mt19937_64 random(44);
  int faster = 0;
  for (int i = 0; i < 100; ++i) {
    PiperProblem problem = random_levels(random, {.most_nodes = 5, .whole_numbers = false}, 3);
    problem.micro_batches = 24;
    const double time = time_or_infinity(solve_piper(problem));
    for (std::size_t level = 0; level < problem.levels.size(); ++level) {
      PiperProblem more = problem;
      more.levels[level].bandwidth_bytes *= 3;
      more.bandwidth_bytes = more.levels.front().bandwidth_bytes;
      const double with = time_or_infinity(solve_piper(more));
      EXPECT_LE(with, time * (1 + 1e-9)) << "bandwidth of level " << level << ", " << i;
      if (with < time * (1 - 1e-9)) ++faster;
      more = problem;
      ++more.levels[level].devices;
      more.devices = 1;
      for (const PiperLevel& l : more.levels) more.devices *= l.devices;
      EXPECT_LE(time_or_infinity(solve_piper(more)), time * (1 + 1e-9))
          << "devices of level " << level << ", " << i;
    }
    PiperProblem more = problem;
    more.memory_bytes *= 1.5;
    EXPECT_LE(time_or_infinity(solve_piper(more)), time * (1 + 1e-9)) << "memory " << i;
    for (const char* variant : {"no-dp", "no-tp", "no-ar", "dp-only", "tp-only"}) {
      const PiperSolution less = find_piper_variant(variant).solve(problem, {});
      EXPECT_GE(time_or_infinity(less), time * (1 - 1e-9)) << variant << " " << i;
    }
  }
  EXPECT_GT(faster, 20);
}

/// With free communication nesting is all that is left: never better than flat.
TEST(PiperLevels, NestingAloneNeverHelps) {
  std::mt19937_64 random(45);
  for (int i = 0; i < 200; ++i) {
    PiperProblem problem = random_piper_problem(random, {.most_nodes = 4, .whole_numbers = false});
    problem.memory_bytes = 1e6;
    problem.micro_batches = 12;
    problem.devices = 4;
    problem.levels = {{2, 1e12}, {2, 1e12}};
    problem.bandwidth_bytes = 1e12;
    PiperProblem flat = problem;
    flat.levels.clear();
    EXPECT_GE(time_or_infinity(solve_piper(problem)),
              time_or_infinity(solve_piper(flat)) * (1 - 1e-9))
        << i;
  }
}

TEST(PiperLevels, RefuseWhatTheyCannotDo) {
  std::mt19937_64 random(46);
  PiperProblem problem = random_levels(random, {}, 2);
  const auto complains = [](const PiperProblem& p) {
    try {
      check_piper_problem(p, "file");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complains(problem), "");
  PiperProblem bad = problem;
  bad.devices += 1;
  EXPECT_NE(complains(bad).find("multiply"), std::string::npos);
  bad = problem;
  bad.levels.back().devices = 0;
  EXPECT_NE(complains(bad).find("devices of a level"), std::string::npos);
  bad = problem;
  bad.levels.back().bandwidth_bytes = std::nan("");
  EXPECT_NE(complains(bad).find("bandwidth"), std::string::npos);
  bad = problem;
  bad.levels = {{1'000'000, 1}, {1'000'000, 1}, {1'000'000, 1}, {1'000'000, 1}};
  bad.bandwidth_bytes = 1;
  EXPECT_NE(complains(bad).find("multiply"), std::string::npos);
  bad = problem;
  bad.rules.knapsack = PiperKnapsack::heuristic;
  EXPECT_THROW(solve_piper(bad), Error);
  EXPECT_THROW(find_piper_variant("equi").solve(problem, {}), Error);
  EXPECT_THROW(find_piper_variant("pipedream").solve(problem, {}), Error);
}

}  // namespace
}  // namespace braid
