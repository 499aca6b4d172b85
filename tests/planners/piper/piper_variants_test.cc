#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/piper/variants.h"

#include "planners/piper_oracle.h"

namespace braid {
namespace {

PiperSolution solve(const char* variant, const PiperProblem& problem) {
  return find_piper_variant(variant).solve(problem, {});
}

PiperProblem random_with_recomputation(std::mt19937_64& random, int number) {
  PiperProblem problem = random_piper_problem(
      random, {.most_nodes = 3, .most_devices = 4, .whole_numbers = number % 2 == 0});
  for (PiperNode& node : problem.nodes) {
    for (PiperDegree& degree : node.degrees) {
      for (PiperOption& option : degree.options) option.recompute = random() % 3 == 0;
    }
  }
  problem.one_stage = false;
  problem.least_dp = problem.dp_multiple = 1;
  problem.most_dp = std::int64_t{1} << 40;
  return problem;
}

/// The best is `best`, infinite where nothing fits.
void expect_answer(const PiperProblem& problem, const PiperSolution& solution, double best) {
  if (best == kInfinity) {
    ASSERT_EQ(solution.status, Status::infeasible);
    return;
  }
  ASSERT_EQ(solution.status, Status::optimal);
  ASSERT_NEAR(solution.time, best, 1e-9 * best);
  ASSERT_EQ(fault_of(problem, solution), "");
}

/// 10,000 random graphs: the variant finds the least time of the problem that `less` makes smaller.
void expect_brute_force(const char* variant, unsigned seed,
                        const std::function<void(PiperProblem&)>& less) {
  std::mt19937_64 random(seed);
  int infeasible = 0, slower = 0;
  for (int i = 0; i < 10'000; ++i) {
    const PiperProblem problem = random_with_recomputation(random, i);
    PiperProblem restricted = problem;
    less(restricted);
    const bool possible = std::none_of(restricted.nodes.begin(), restricted.nodes.end(),
                                       [](const PiperNode& node) { return node.degrees.empty(); });
    const double best = possible ? brute_force_time(restricted) : kInfinity;
    const PiperSolution solution = solve(variant, problem);
    expect_answer(problem, solution, best);
    if (::testing::Test::HasFatalFailure()) FAIL() << variant << " " << i;
    if (best == kInfinity) {
      ++infeasible;
      continue;
    }
    slower += i % 10 == 0 && solution.time > solve_piper(problem).time * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(infeasible, 500) << variant;
  EXPECT_GT(slower, 20) << variant;
}

void keep_tp_one(PiperProblem& problem) {
  for (PiperNode& node : problem.nodes) {
    std::erase_if(node.degrees, [](const PiperDegree& degree) { return degree.tp > 1; });
  }
}

TEST(PiperVariants, NoDpAgreesWithBruteForce) {
  expect_brute_force("no-dp", 51, [](PiperProblem& problem) { problem.most_dp = 1; });
}

TEST(PiperVariants, NoTpAgreesWithBruteForce) { expect_brute_force("no-tp", 52, keep_tp_one); }

TEST(PiperVariants, NoArAgreesWithBruteForce) {
  expect_brute_force("no-ar", 53, [](PiperProblem& problem) {
    for (PiperNode& node : problem.nodes) {
      for (PiperDegree& degree : node.degrees) {
        std::erase_if(degree.options, [](const PiperOption& option) { return option.recompute; });
      }
      std::erase_if(node.degrees, [](const PiperDegree& degree) { return degree.options.empty(); });
    }
  });
}

TEST(PiperVariants, DpOnlyAgreesWithBruteForce) {
  expect_brute_force("dp-only", 54, [](PiperProblem& problem) {
    keep_tp_one(problem);
    problem.one_stage = true;
  });
}

TEST(PiperVariants, TpOnlyAgreesWithBruteForce) {
  expect_brute_force("tp-only", 55, [](PiperProblem& problem) {
    problem.most_dp = 1;
    problem.one_stage = true;
  });
}

/// Layers in depth-first topological order, by the definition: of those that are ready, the one
/// that has become so last; of several at once, the successors' order decides.
std::vector<int> depth_first(const PiperProblem& problem) {
  std::vector<int> order, ready;
  const auto waits = [&](int v) {
    return std::any_of(problem.edges.begin(), problem.edges.end(), [&](const PiperEdge& edge) {
      return edge.target == v && std::find(order.begin(), order.end(), edge.source) == order.end();
    });
  };
  const auto nodes = static_cast<int>(problem.nodes.size());
  for (int v = 0; v < nodes; ++v) {
    if (!waits(v)) ready.push_back(v);
  }
  while (!ready.empty()) {
    const int v = ready.back();
    ready.pop_back();
    order.push_back(v);
    for (int w = nodes - 1; w > v; --w) {
      const bool follows =
          std::any_of(problem.edges.begin(), problem.edges.end(),
                      [&](const PiperEdge& edge) { return edge.source == v && edge.target == w; });
      if (follows && !waits(w)) ready.push_back(w);
    }
  }
  return order;
}

/// Least time over all numbers of equal stages cut from the order, degrees and recomputation; every
/// layer of its own kind.
double brute_force_equi(const PiperProblem& problem) {
  const std::vector<int> order = depth_first(problem);
  const auto layers = static_cast<int>(order.size());
  double best = kInfinity;
  for (int stages = 1; stages <= layers; ++stages) {
    for (int tp = 1; tp <= 3; ++tp) {
      for (const bool recompute : {false, true}) {
        for (int dp = 1; dp * stages * tp <= problem.devices; ++dp) {
          if (problem.rules.split == PiperSplit::even && problem.micro_batches % dp != 0) continue;
          if (dp * stages > problem.micro_batches) continue;
          // One option a layer: the fastest of those asked for, or of all.
          PiperProblem chosen = problem;
          bool possible = true;
          for (PiperNode& node : chosen.nodes) {
            std::erase_if(node.degrees, [&](const PiperDegree& d) { return d.tp != tp; });
            if (node.degrees.empty()) {
              possible = false;
              break;
            }
            std::vector<PiperOption>& options = node.degrees[0].options;
            std::stable_sort(options.begin(), options.end(),
                             [&](const PiperOption& a, const PiperOption& b) {
                               return std::pair(a.recompute != recompute, a.time) <
                                      std::pair(b.recompute != recompute, b.time);
                             });
            options.resize(1);
          }
          if (!possible) continue;
          double slowest = 0;
          int next = 0;
          for (int s = 0; s < stages; ++s) {
            const int take = layers / stages + (s >= stages - layers % stages ? 1 : 0);
            unsigned stage = 0;
            for (int i = 0; i < take; ++i) {
              stage |= 1U << order[static_cast<std::size_t>(next++)];
            }
            slowest = std::max(slowest, brute_force_stage_time(chosen, stage, tp, dp, stages - s));
          }
          best = std::min(best, slowest);
        }
      }
    }
  }
  return best;
}

void expect_equi(const char* variant, unsigned seed, bool with_tp) {
  std::mt19937_64 random(seed);
  int infeasible = 0, unfinished = 0;
  for (int i = 0; i < 10'000; ++i) {
    PiperProblem problem = random_with_recomputation(random, i);
    // Layers of one kind would be blocks.
    for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
      for (PiperDegree& degree : problem.nodes[v].degrees) {
        for (PiperOption& option : degree.options) {
          option.fixed_bytes += 1e-3 * static_cast<double>(v);
        }
      }
    }
    PiperProblem restricted = problem;
    if (!with_tp) keep_tp_one(restricted);
    const double best = brute_force_equi(restricted);
    const PiperSolution solution = solve(variant, problem);
    expect_answer(problem, solution, best);
    if (::testing::Test::HasFatalFailure()) FAIL() << variant << " " << i;
    infeasible += best == kInfinity ? 1 : 0;
    // What the work does not suffice for is in the bound.
    PiperSearchLimits few;
    few.work = 1 + i % 4;
    const PiperSolution part = find_piper_variant(variant).solve(problem, few);
    EXPECT_NE(part.status, best < kInfinity ? Status::infeasible : Status::optimal) << i;
    EXPECT_LE(part.bound, best * (1 + 1e-9)) << i;
    if (!part.stages.empty()) {
      EXPECT_GE(part.time, best * (1 - 1e-9)) << i;
    }
    if (part.status == Status::optimal) {
      EXPECT_LE(part.time, best * (1 + 1e-9)) << i;
    }
    const bool done = part.status == Status::optimal || part.status == Status::infeasible;
    unfinished += done ? 0 : 1;
  }
  EXPECT_GT(infeasible, 500);
  EXPECT_LT(infeasible, 8000);
  EXPECT_GT(unfinished, 500);
}

TEST(PiperVariants, EquiAgreesWithBruteForce) { expect_equi("equi", 56, true); }
TEST(PiperVariants, EquiNoTpAgreesWithBruteForce) { expect_equi("equi-no-tp", 57, false); }

/// Of a long chain only few cuts are priced: averages say that the others are slower.
TEST(PiperVariants, EquiPricesFewCutsOfALongChain) {
  PiperProblem problem;
  constexpr std::int32_t kLayers = 400;
  for (std::int32_t v = 0; v < kLayers; ++v) {
    PiperOption option;
    option.time = 1;
    option.fixed_bytes = 1 + 1e-3 * v;  // No two alike.
    problem.nodes.push_back({std::to_string(v), {{1, {option}}}});
    if (v > 0) problem.edges.push_back({v - 1, v, 1});
  }
  problem.devices = 512;
  problem.micro_batches = 1024;
  problem.memory_bytes = 1e6;
  problem.bandwidth_bytes = 1e3;
  const PiperSolution solution = solve("equi", problem);
  ASSERT_FALSE(solution.stages.empty());
  EXPECT_LT(solution.work, 20'000);  // All: 160,400.
}

/// Blocks of one kind between other layers: stages have equally many of them, the others go to the
/// ends, with them or apart.
TEST(PiperVariants, EquiCutsBlocks) {
  PiperProblem problem;
  const auto layer = [&](double time, double bytes) {
    PiperOption option;
    option.time = time;
    option.fixed_bytes = bytes;
    problem.nodes.push_back({"layer", {{1, {option}}}});
    const auto v = static_cast<std::int32_t>(problem.nodes.size());
    if (v > 1) problem.edges.push_back({v - 2, v - 1, 0});
  };
  layer(3, 1);
  for (int i = 0; i < 5; ++i) layer(2, 2);
  layer(4, 3);
  problem.micro_batches = 8;
  problem.memory_bytes = 100;
  problem.bandwidth_bytes = 1;
  problem.rules.split = PiperSplit::ideal;
  problem.devices = 2;
  EXPECT_EQ(solve("equi", problem).time, 8.5);  // One stage of 17, twice.
  problem.most_dp = 1;
  EXPECT_EQ(solve("equi", problem).time, 10);  // 3 + 2·2 and 3·2 + 4.
  problem.devices = 4;
  EXPECT_EQ(solve("equi", problem).time, 6);  // 3, 2·2, 3·2 and 4.
  problem.devices = 7;
  EXPECT_EQ(solve("equi", problem).time, 4);  // Every layer alone.
}

/// PipeDream's recurrence over all cuts and replicas.
double brute_force_pipedream(const std::vector<double>& times, const std::vector<double>& weights,
                             const std::vector<double>& between, const PiperProblem& problem,
                             std::size_t begin, std::int64_t devices) {
  if (begin == times.size()) return 0;
  double best = kInfinity, time = 0, weight = 0;
  for (std::size_t end = begin + 1; end <= times.size(); ++end) {
    time += times[end - 1];
    weight += weights[end - 1];
    for (std::int64_t m = 1; m <= devices; ++m) {
      if (problem.rules.split == PiperSplit::even && problem.micro_batches % m != 0) continue;
      const auto replicas = static_cast<double>(m);
      const double sync = 2 * (replicas - 1) * weight / problem.bandwidth_bytes;
      const double stage =
          std::max(std::max(time, sync) / replicas, 2 * between[begin] / problem.bandwidth_bytes);
      best = std::min(best, std::max(stage, brute_force_pipedream(times, weights, between, problem,
                                                                  end, devices - m)));
    }
  }
  return best;
}

/// A problem as PipeDream has it: the fastest plain option of every layer.
struct PipeDreamLayers {
  std::vector<double> times, weights;
  std::vector<double> between;  ///< Bytes over each cut of the chain.

  explicit PipeDreamLayers(const PiperProblem& problem) : between(problem.nodes.size() + 1, 0) {
    for (const PiperNode& node : problem.nodes) {
      const PiperOption* fastest = nullptr;
      for (const PiperDegree& degree : node.degrees) {
        for (const PiperOption& option : degree.options) {
          if (degree.tp == 1 && !option.recompute &&
              (fastest == nullptr || option.time < fastest->time)) {
            fastest = &option;
          }
        }
      }
      if (fastest == nullptr) break;
      times.push_back(fastest->time);
      weights.push_back(fastest->parameter_bytes);
    }
    for (const PiperEdge& edge : problem.edges) {
      for (int cut = edge.source + 1; cut <= edge.target; ++cut) {
        between[static_cast<std::size_t>(cut)] += edge.bytes;
      }
    }
  }

  /// The slowest of the stages and of what is between them; infinite without stages.
  double slowest(const PiperProblem& problem, const PiperSolution& solution) const {
    double slowest = solution.stages.empty() ? kInfinity : 0;
    for (const PiperStage& stage : solution.stages) {
      double time = 0, weight = 0;
      for (const std::int32_t v : stage.nodes) {
        time += times[static_cast<std::size_t>(v)];
        weight += weights[static_cast<std::size_t>(v)];
      }
      const auto m = static_cast<double>(stage.dp);
      const double border = between[static_cast<std::size_t>(stage.nodes.front())];
      const double sync = 2 * (m - 1) * weight / problem.bandwidth_bytes;
      slowest = std::max({slowest, std::max(time, sync) / m, 2 * border / problem.bandwidth_bytes});
    }
    return slowest;
  }
};

TEST(PiperVariants, PipeDreamAgreesWithBruteForce) {
  std::mt19937_64 random(58);
  int infeasible = 0, overfull = 0;
  for (int i = 0; i < 10'000; ++i) {
    const PiperProblem problem = random_with_recomputation(random, i);
    const PipeDreamLayers layers(problem);
    const bool possible = layers.times.size() == problem.nodes.size();
    const std::int64_t most = std::min(problem.devices, problem.micro_batches);
    const double best = possible ? brute_force_pipedream(layers.times, layers.weights,
                                                         layers.between, problem, 0, most)
                                 : kInfinity;
    PiperProblem roomy = problem;
    roomy.memory_bytes = 1e12;
    const PiperSolution solution = solve("pipedream", roomy);
    if (best == kInfinity) {
      ASSERT_TRUE(solution.stages.empty()) << i;
      ++infeasible;
      continue;
    }
    ASSERT_FALSE(solution.stages.empty()) << i;
    ASSERT_EQ(fault_of(roomy, solution), "") << i;
    double fullest = 0;
    for (const PiperStage& stage : solution.stages) fullest = std::max(fullest, stage.memory_bytes);
    ASSERT_NEAR(layers.slowest(roomy, solution), best, 1e-9 * best) << i;
    // Memory makes no other plan of it.
    const PiperSolution tight = solve("pipedream", problem);
    const bool fits = fullest <= problem.memory_bytes * (1 + 1e-12);
    ASSERT_EQ(tight.stages.empty(), !fits) << i;
    if (fits) {
      ASSERT_EQ(tight.stages, solution.stages) << i;
      continue;
    }
    ++overfull;
    ASSERT_NEAR(tight.needed_bytes, fullest, 1e-9 * fullest) << i;
    ASSERT_NE(tight.reason.find("more than there is"), std::string::npos) << i;
  }
  EXPECT_GT(infeasible, 200);
  EXPECT_GT(overfull, 200);
}

/// Its own objective; it does not look at memory.
TEST(PiperVariants, MoreResourcesNeverHurtPipeDream) {
  std::mt19937_64 random(62);
  int faster = 0;
  for (int i = 0; i < 500; ++i) {
    PiperProblem problem =
        random_piper_problem(random, {.most_nodes = 6, .most_devices = 10, .whole_numbers = false});
    problem.micro_batches = 12;
    problem.memory_bytes = 1e12;
    const PipeDreamLayers layers(problem);
    const auto time = [&](const PiperProblem& changed) {
      return layers.slowest(changed, solve("pipedream", changed));
    };
    const double before = time(problem);
    PiperProblem more = problem;
    more.devices += 1 + i % 3;
    const double with_devices = time(more);
    EXPECT_LE(with_devices, before * (1 + 1e-9)) << i;
    faster += with_devices < before * (1 - 1e-9) ? 1 : 0;
    more = problem;
    more.bandwidth_bytes *= 2;
    EXPECT_LE(time(more), before * (1 + 1e-9)) << i;
    more = problem;
    more.micro_batches *= 2;
    EXPECT_LE(time(more), before * (1 + 1e-9)) << i;
  }
  EXPECT_GT(faster, 50);
}

TEST(PiperVariants, MoreResourcesNeverHurt) {
  std::mt19937_64 random(59);
  for (int i = 0; i < 200; ++i) {
    PiperProblem problem = random_piper_problem(
        random,
        {.most_nodes = 5, .most_devices = 10, .whole_numbers = false, .recompute_pairs = true});
    problem.micro_batches = 12;
    problem.memory_bytes *= 2;
    for (const PiperVariant& variant : kPiperVariants) {
      if (variant.name == "pipedream") continue;  // It minimises something else: see above.
      const double time = time_or_infinity(variant.solve(problem, {}));
      PiperProblem more = problem;
      more.devices += 1 + i % 3;
      EXPECT_LE(time_or_infinity(variant.solve(more, {})), time * (1 + 1e-9)) << variant.name << i;
      more = problem;
      more.memory_bytes *= 1.4;
      EXPECT_LE(time_or_infinity(variant.solve(more, {})), time * (1 + 1e-9)) << variant.name << i;
      more = problem;
      more.bandwidth_bytes *= 2;
      EXPECT_LE(time_or_infinity(variant.solve(more, {})), time * (1 + 1e-9)) << variant.name << i;
      more = problem;
      more.micro_batches *= 2;
      EXPECT_LE(time_or_infinity(variant.solve(more, {})), time * (1 + 1e-9)) << variant.name << i;
    }
  }
}

/// Those that cut layers in an order of their own, equi and pipedream, depend on it.
TEST(PiperVariants, LayerNumbersDoNotMatter) {
  std::mt19937_64 random(60);
  for (int i = 0; i < 200; ++i) {
    PiperProblem problem = random_piper_problem(
        random,
        {.most_nodes = 6, .most_devices = 10, .whole_numbers = false, .recompute_pairs = true});
    problem.micro_batches = 12;
    problem.rules.tensors = PiperTensors::per_edge;  // "once" charges the first reader's re-layout.
    const PiperProblem other = relabelled(problem, random);
    for (const char* variant : {"no-dp", "no-tp", "no-ar", "dp-only", "tp-only"}) {
      const PiperSolution a = solve(variant, problem), b = solve(variant, other);
      ASSERT_EQ(a.status, b.status) << variant << i;
      ASSERT_NEAR(a.time, b.time, 1e-9 * a.time) << variant << i;
    }
  }
}

/// What is short is said of the variant's own space: with the bytes named it finds a plan.
TEST(PiperVariants, SayHowMuchMemoryWouldDo) {
  std::mt19937_64 random(61);
  std::map<std::string_view, int> explained;
  for (int i = 0; i < 400; ++i) {
    PiperProblem problem = random_with_recomputation(random, i);
    problem.memory_bytes /= 2;
    for (const PiperVariant& variant : kPiperVariants) {
      PiperSolution solution = variant.solve(problem, {});
      if (!solution.stages.empty()) continue;
      if (solution.reason.empty()) {
        explain_infeasible(variant.restrict(problem), variant.search, {}, solution);
      }
      ASSERT_FALSE(solution.reason.empty()) << variant.name << i;
      if (solution.needed_bytes == 0) continue;
      ASSERT_GT(solution.needed_bytes, problem.memory_bytes) << variant.name << i;
      if (solution.reason.find("every way to cut stages") == std::string::npos) continue;
      ++explained[variant.name];
      PiperProblem enough = problem;
      enough.memory_bytes = solution.needed_bytes * (1 + 1e-9);
      ASSERT_FALSE(variant.solve(enough, {}).stages.empty()) << variant.name << i;
    }
  }
  EXPECT_GE(explained.size(), 5U);
}

/// No planner of a smaller space beats piper under the same objective, whatever the rules, and what
/// any of them finds is a solution of piper's problem.
TEST(PiperVariants, NoSmallerSpaceBeatsPiper) {
  std::mt19937_64 random(31);
  std::map<std::string_view, int> found;
  int slower = 0;
  for (int trial = 0; trial < 600; ++trial) {
    RandomPiper what;
    what.whole_numbers = trial % 2 == 0;
    what.recompute_pairs = trial % 3 == 0;
    PiperProblem problem = random_piper_problem(random, what);
    problem.rules.knapsack = PiperKnapsack::exact;
    problem.one_stage = false;
    const PiperSolution best = solve_piper(problem);
    for (const PiperVariant& variant : kPiperVariants) {
      const PiperSolution solution = variant.solve(problem, {});
      if (solution.stages.empty()) continue;
      ASSERT_FALSE(best.stages.empty()) << variant.name << " in trial " << trial;
      EXPECT_GE(solution.time, best.time * (1 - 1e-9)) << variant.name << " in trial " << trial;
      EXPECT_EQ(fault_of(problem, solution), "") << variant.name << " in trial " << trial;
      ++found[variant.name];
      if (solution.time > best.time * (1 + 1e-9)) ++slower;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(found.size(), kPiperVariants.size());
  for (const auto& [name, times] : found) EXPECT_GT(times, 10) << name;
  EXPECT_GT(slower, 50);
}

}  // namespace
}  // namespace braid
