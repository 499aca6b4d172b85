#include "braid/planners/phaze_placement.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int pick(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

PhazeProblem random_problem(std::mt19937_64& random, int most_layers) {
  PhazeProblem problem;
  const int layers = pick(random, 1, most_layers);
  problem.devices = pick(random, 1, 7);
  problem.memory_bytes = pick(random, 0, 2) == 0 ? 1e6 : pick(random, 8, 60);
  problem.bytes_per_s = pick(random, 1, 3);
  problem.micro_batches = pick(random, 1, 9);
  problem.recompute = pick(random, 0, 1) == 1;
  problem.optimizer_bytes_per_weight_byte = pick(random, 0, 1);
  const bool chain = pick(random, 0, 2) == 0;
  for (int l = 0; l < layers; ++l) {
    problem.names.push_back(std::to_string(l));
    for (int before = 0; before < l; ++before) {
      if (chain ? before + 1 == l : pick(random, 0, 2) == 0) problem.edges.emplace_back(before, l);
    }
  }
  std::sort(problem.edges.begin(), problem.edges.end());
  for (int tp = 1; tp <= 2; ++tp) {
    if (tp == 2 && pick(random, 0, 1) == 0) break;
    PhazeWidth width;
    width.tp = tp;
    for (int l = 0; l < layers; ++l) {
      PhazeLayer layer;
      layer.forward_s = pick(random, 0, 9);
      layer.backward_s = pick(random, 0, 9);
      layer.weight_bytes = pick(random, 0, 6);
      layer.activation_bytes = pick(random, 0, 6);
      layer.tensor_parallel = pick(random, 0, 1) == 1;
      width.layers.push_back(layer);
    }
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
      width.edge_bytes.push_back(pick(random, 0, 12));
    }
    problem.widths.push_back(width);
  }
  return problem;
}

/// The model of §5.1 written down once more, layer by layer.
struct Stage {
  std::int64_t devices = 1;
  double forward_s = 0, backward_s = 0, weight_bytes = 0;
  std::map<int, double> held_bytes, stash_bytes;  ///< By group.
};

Stage run_stage(const PhazeProblem& problem, const PhazeWidth& width, const std::set<int>& layers,
                int branches, bool last) {
  Stage stage;
  std::map<int, int> group;
  std::map<int, double> ready, free;
  const auto time_of = [&](std::size_t edge) {
    return width.edge_bytes[edge] / problem.bytes_per_s;
  };
  const auto forward = [&](bool choose, bool wait_outside) {
    for (const int layer : layers) {
      double best = kInfinity;
      int best_group = 0;
      for (int g = 0; g < branches; ++g) {
        if (!choose && g != group[layer]) continue;
        double start = free[g];
        for (std::size_t e = 0; e < problem.edges.size(); ++e) {
          const auto [from, to] = problem.edges[e];
          if (to != layer) continue;
          if (layers.count(from) == 0) {
            if (wait_outside) start = std::max(start, time_of(e));
          } else {
            start = std::max(start, ready[from] + (group[from] != g ? time_of(e) : 0));
          }
        }
        if (start < best) {
          best = start;
          best_group = g;
        }
      }
      group[layer] = best_group;
      ready[layer] = free[best_group] =
          best + width.layers[static_cast<std::size_t>(layer)].forward_s;
    }
  };
  const auto end = [&] {
    double latest = 0;
    for (const auto& [g, time] : free) latest = std::max(latest, time);
    return latest;
  };
  forward(true, true);
  stage.forward_s = end();
  free.clear();
  if (problem.recompute && !last) forward(false, false);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    double start = free[group[*layer]];
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
      const auto [from, to] = problem.edges[e];
      if (from != *layer) continue;
      if (layers.count(to) == 0) {
        start = std::max(start, time_of(e));
      } else {
        start = std::max(start, ready[to] + (group[to] != group[from] ? time_of(e) : 0));
      }
    }
    ready[*layer] = free[group[*layer]] =
        start + width.layers[static_cast<std::size_t>(*layer)].backward_s;
  }
  stage.backward_s = end();
  bool split = false;
  std::map<int, double> weights;
  for (const int l : layers) {
    const PhazeLayer& layer = width.layers[static_cast<std::size_t>(l)];
    split = split || layer.tensor_parallel;
    weights[group[l]] += layer.weight_bytes;
    stage.held_bytes[group[l]] +=
        (2 + problem.optimizer_bytes_per_weight_byte) * layer.weight_bytes + layer.activation_bytes;
    if (!problem.recompute) stage.stash_bytes[group[l]] += layer.activation_bytes;
  }
  for (std::size_t e = 0; problem.recompute && e < problem.edges.size(); ++e) {
    const auto [from, to] = problem.edges[e];
    if (layers.count(to) != 0 && layers.count(from) == 0) {
      stage.stash_bytes[group[to]] += width.edge_bytes[e];
    }
  }
  for (const auto& [g, bytes] : weights) stage.weight_bytes = std::max(stage.weight_bytes, bytes);
  stage.devices = branches * (split ? width.tp : 1);
  return stage;
}

/// The objective of these stages with this dp; infinity when they do not fit.
double time_of(const PhazeProblem& problem, const PhazeWidth& width, std::int64_t dp,
               const std::vector<std::pair<std::set<int>, int>>& stages, PhazeObjective objective) {
  const auto p = static_cast<int>(stages.size());
  const double m = std::ceil(static_cast<double>(problem.micro_batches) / static_cast<double>(dp));
  double longest = 0, sum = 0, first_sync = 0, late = 0, before = 0;
  std::int64_t devices = 0;
  for (int i = 0; i < p; ++i) {
    const auto& [layers, branches] = stages[static_cast<std::size_t>(i)];
    Stage stage = run_stage(problem, width, layers, branches, i + 1 == p);
    for (const auto& [g, bytes] : stage.held_bytes) {
      if (bytes + (p - i - 1) * stage.stash_bytes[g] > problem.memory_bytes) return kInfinity;
    }
    devices += stage.devices * dp;
    const double sync = 4 * (static_cast<double>(dp) - 1) / static_cast<double>(dp) *
                        stage.weight_bytes / problem.bytes_per_s;
    if (i == 0) first_sync = sync;
    late = std::max(late, sync - before);
    before += stage.backward_s;
    longest = std::max(longest, stage.forward_s + stage.backward_s);
    sum += stage.forward_s + stage.backward_s;
  }
  if (devices > problem.devices) return kInfinity;
  return objective == PhazeObjective::program ? (m + p - 1) * longest + first_sync
                                              : (m - 1) * longest + sum + late;
}

/// Whether a layer outside `taken` feeds one of `layers`.
bool closed(const PhazeProblem& problem, const std::set<int>& taken, const std::set<int>& layers) {
  return std::all_of(problem.edges.begin(), problem.edges.end(), [&](const auto& edge) {
    return layers.count(edge.second) == 0 || layers.count(edge.first) != 0 ||
           taken.count(edge.first) != 0;
  });
}

/// Every ordered partition into stages that run in dependency order, every number of branches.
double brute_force(const PhazeProblem& problem, PhazeObjective objective, bool branching) {
  double best = kInfinity;
  const auto count = static_cast<int>(problem.names.size());
  std::set<int> taken;
  std::vector<std::pair<std::set<int>, int>> stages;
  const std::function<void(const PhazeWidth&)> extend = [&](const PhazeWidth& width) {
    if (static_cast<int>(taken.size()) == count) {
      for (std::int64_t dp = 1; dp <= std::min(problem.devices, problem.micro_batches); ++dp) {
        best = std::min(best, time_of(problem, width, dp, stages, objective));
      }
      return;
    }
    for (unsigned bits = 1; bits < 1U << count; ++bits) {
      std::set<int> layers;
      bool free = true;
      for (int l = 0; l < count; ++l) {
        if ((bits >> l & 1U) == 0) continue;
        layers.insert(l);
        free = free && taken.count(l) == 0;
      }
      if (!free || !closed(problem, taken, layers)) continue;
      int most = 1;
      if (branching) {
        std::map<int, int> depth;
        std::map<int, int> wide;
        for (const int l : layers) {
          for (const auto& [from, to] : problem.edges) {
            if (to == l && layers.count(from) != 0) depth[l] = std::max(depth[l], depth[from] + 1);
          }
          most = std::max(most, ++wide[depth[l]]);
        }
      }
      for (int branches = 1; branches <= most; ++branches) {
        taken.insert(layers.begin(), layers.end());
        stages.emplace_back(layers, branches);
        extend(width);
        stages.pop_back();
        for (const int l : layers) taken.erase(l);
      }
    }
  };
  for (const PhazeWidth& width : problem.widths) extend(width);
  return best;
}

void compare(PhazeObjective objective, int count, unsigned seed) {
  std::mt19937_64 random(seed);
  int feasible = 0;
  for (int n = 0; n < count; ++n) {
    const PhazeProblem problem = random_problem(random, n % 50 == 0 ? 5 : 4);
    const bool branching = pick(random, 0, 3) != 0;
    const auto found = place_phaze(problem, {.objective = objective, .branches = branching});
    const double best = brute_force(problem, objective, branching);
    ASSERT_EQ(found.has_value(), best < kInfinity) << n;
    if (!found.has_value()) continue;
    ++feasible;
    const double time_s = objective == PhazeObjective::program ? found->program_s : found->flush_s;
    ASSERT_NEAR(time_s, best, 1e-9 * (1 + best)) << n;
    ASSERT_TRUE(found->fits(problem)) << n;
    std::vector<std::pair<std::set<int>, int>> stages;
    for (const PhazeStage& stage : found->stages) {
      stages.emplace_back(std::set<int>(stage.layers.begin(), stage.layers.end()), stage.branches);
    }
    const auto width =
        std::find_if(problem.widths.begin(), problem.widths.end(),
                     [&](const PhazeWidth& candidate) { return candidate.tp == found->tp; });
    ASSERT_NEAR(time_of(problem, *width, found->dp, stages, objective), best, 1e-9 * (1 + best));
  }
  EXPECT_GT(feasible, count / 2);
}

TEST(PhazePlacement, IsTheBestOfAllByTheProgramsFormula) {
  compare(PhazeObjective::program, 5000, 51);
}

TEST(PhazePlacement, IsTheBestOfAllByFlushTime) { compare(PhazeObjective::flush, 6000, 52); }

TEST(PhazePlacement, MoreDevicesMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(53);
  for (int n = 0; n < 1500; ++n) {
    const PhazeProblem problem = random_problem(random, 6);
    const auto time_s = [&](const PhazeProblem& changed) {
      const auto found = place_phaze(changed, {.branches = false});
      return found.has_value() ? found->flush_s : kInfinity;
    };
    const double before_s = time_s(problem);
    PhazeProblem more = problem;
    more.devices += 1;
    ASSERT_LE(time_s(more), before_s * (1 + 1e-12)) << n;
    more = problem;
    more.memory_bytes += pick(random, 1, 20);
    ASSERT_LE(time_s(more), before_s * (1 + 1e-12)) << n;
    more = problem;
    more.bytes_per_s *= 2;
    ASSERT_LE(time_s(more), before_s * (1 + 1e-12)) << n;
    more = problem;
    more.widths.resize(1);
    ASSERT_GE(time_s(more), before_s * (1 - 1e-12)) << n;
  }
}

TEST(PhazePlacement, SimulatesToTheFormulaWhenLoadsAreEqual) {
  std::mt19937_64 random(54);
  for (int n = 0; n < 200; ++n) {
    PhazeProblem problem;
    const int layers = pick(random, 1, 6);
    problem.devices = layers;
    problem.memory_bytes = 1e9;
    problem.bytes_per_s = 1;
    problem.micro_batches = pick(random, 1, 20);
    PhazeWidth width;
    for (int l = 0; l < layers; ++l) {
      problem.names.push_back(std::to_string(l));
      if (l > 0) problem.edges.emplace_back(l - 1, l);
      width.layers.push_back({3, 5, 1, 1, false});
    }
    width.edge_bytes.assign(problem.edges.size(), 0);
    problem.widths = {width};
    std::vector<PhazeStage> stages;
    for (int l = 0; l < layers; ++l) stages.push_back({{l}});
    const PhazePlacement placement = phaze_placement(problem, width, 1, stages);
    EXPECT_DOUBLE_EQ(placement.program_s, placement.flush_s);
    EXPECT_DOUBLE_EQ(phaze_simulated_s(problem, placement), placement.program_s);
  }
}

TEST(PhazePlacement, BySimulationIsNoWorseThanByTheFormulas) {
  std::mt19937_64 random(55);
  for (int n = 0; n < 500; ++n) {
    const PhazeProblem problem = random_problem(random, 5);
    const auto simulated = place_phaze(problem, {.objective = PhazeObjective::simulated});
    const auto flush = place_phaze(problem, {});
    ASSERT_EQ(simulated.has_value(), flush.has_value());
    if (!simulated.has_value()) continue;
    ASSERT_LE(phaze_simulated_s(problem, *simulated),
              phaze_simulated_s(problem, *flush) * (1 + 1e-12));
  }
}

TEST(PhazePlacement, RefusesWhatWouldTakeForEver) {
  PhazeProblem chain, fan;
  for (PhazeProblem* problem : {&chain, &fan}) {
    const int layers = problem == &chain ? 2400 : 40;
    problem->devices = 4096;
    problem->memory_bytes = 1e9;
    problem->bytes_per_s = 1;
    PhazeWidth width;
    for (int l = 0; l < layers; ++l) {
      problem->names.push_back(std::to_string(l));
      width.layers.push_back({1, 1, 1, 1, false});
      if (problem == &chain && l > 0) {
        problem->edges.emplace_back(l - 1, l);
        width.edge_bytes.push_back(1);
      }
    }
    problem->widths = {width};
    EXPECT_THROW(place_phaze(*problem, {}), Error);
  }
}

TEST(PhazePlacement, SaysWhatDoesNotFit) {
  PhazeProblem problem;
  problem.devices = 2;
  problem.memory_bytes = 100;
  problem.bytes_per_s = 1;
  problem.names = {"first", "large"};
  problem.edges = {{0, 1}};
  PhazeWidth width;
  width.layers = {{1, 1, 10, 10, false}, {1, 1, 50, 7, false}};
  width.edge_bytes = {1};
  problem.widths = {width};
  EXPECT_FALSE(place_phaze(problem, {}).has_value());
  EXPECT_EQ(phaze_shortfall(problem), "layer large alone needs 7 bytes more than a device has");
  problem.memory_bytes = 107;
  EXPECT_TRUE(place_phaze(problem, {}).has_value());
  EXPECT_EQ(phaze_shortfall(problem), "");
}

}  // namespace
}  // namespace braid
