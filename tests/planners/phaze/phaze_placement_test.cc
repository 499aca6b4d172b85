#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/planners/phaze/placement.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;

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
struct TestStage {
  std::int64_t devices = 1;
  double forward_s = 0, backward_s = 0, weight_bytes = 0;
  std::map<int, double> held_bytes, stash_bytes;  ///< By group.
};

TestStage run_stage(const PhazeProblem& problem, const PhazeWidth& width,
                    const std::set<int>& layers, int branches, bool last) {
  TestStage stage;
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

/// Passes of stage i of p in order, forward (true) or backward, with their micro-batches: as many
/// forward passes ahead as there are stages behind, then one of each in turn.
std::vector<std::pair<bool, int>> passes_of(int i, int p, int micro_batches) {
  std::vector<std::pair<bool, int>> passes;
  const int ahead = std::min(micro_batches, p - 1 - i);
  for (int k = 0; k < micro_batches; ++k) {
    passes.emplace_back(true, k);
    if (k >= ahead) passes.emplace_back(false, k - ahead);
  }
  for (int k = micro_batches - ahead; k < micro_batches; ++k) passes.emplace_back(false, k);
  return passes;
}

/// Flushed 1F1B run pass by pass: each waits for the one before on its stage and for its input.
double run_schedule(const std::vector<double>& forward_s, const std::vector<double>& backward_s,
                    const std::vector<double>& sync_s, int micro_batches) {
  const auto p = static_cast<int>(forward_s.size());
  std::map<std::tuple<int, bool, int>, double> end;
  std::vector<std::vector<std::pair<bool, int>>> passes;
  std::vector<std::size_t> next(forward_s.size(), 0);
  std::vector<double> free(forward_s.size(), 0);
  for (int i = 0; i < p; ++i) passes.push_back(passes_of(i, p, micro_batches));
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < p; ++i) {
      const auto at = static_cast<std::size_t>(i);
      while (next[at] < passes[at].size()) {
        const auto [forward, k] = passes[at][next[at]];
        const bool free_input = forward ? i == 0 : false;
        const auto input = forward     ? end.find({i - 1, true, k})
                           : i + 1 < p ? end.find({i + 1, false, k})
                                       : end.find({i, true, k});
        if (!free_input && input == end.end()) break;
        const double start_s = std::max(free[at], free_input ? 0 : input->second);
        free[at] = start_s + (forward ? forward_s : backward_s)[at];
        end[{i, forward, k}] = free[at];
        ++next[at];
        moved = true;
      }
    }
  }
  double latest = 0;
  for (int i = 0; i < p; ++i) {
    const auto at = static_cast<std::size_t>(i);
    latest = std::max(latest, free[at] + sync_s[at]);
  }
  return latest;
}

constexpr PhazeObjective kObjectives[] = {PhazeObjective::program, PhazeObjective::flush,
                                          PhazeObjective::simulated};
using Times = std::array<double, 3>;  ///< By kObjectives.

/// The times of these stages with this dp; infinite when they do not fit.
Times times_of(const PhazeProblem& problem, std::int64_t dp, const std::vector<TestStage>& stages) {
  constexpr Times kNone = {kInfinity, kInfinity, kInfinity};
  const auto p = static_cast<int>(stages.size());
  const double m = std::ceil(static_cast<double>(problem.micro_batches) / static_cast<double>(dp));
  double longest = 0, sum = 0, first_sync = 0, late = 0, before = 0;
  std::int64_t devices = 0;
  std::vector<double> forward_s, backward_s, sync_s;
  for (int i = 0; i < p; ++i) {
    const TestStage& stage = stages[static_cast<std::size_t>(i)];
    for (const auto& [g, bytes] : stage.held_bytes) {
      const auto stash = stage.stash_bytes.find(g);
      const double stash_bytes = stash == stage.stash_bytes.end() ? 0 : stash->second;
      if (bytes + (p - i - 1) * stash_bytes > problem.memory_bytes) return kNone;
    }
    devices += stage.devices * dp;
    const double sync = 4 * (static_cast<double>(dp) - 1) / static_cast<double>(dp) *
                        stage.weight_bytes / problem.bytes_per_s;
    if (i == 0) first_sync = sync;
    late = std::max(late, sync - before);
    before += stage.backward_s;
    longest = std::max(longest, stage.forward_s + stage.backward_s);
    sum += stage.forward_s + stage.backward_s;
    forward_s.push_back(stage.forward_s);
    backward_s.push_back(stage.backward_s);
    sync_s.push_back(sync);
  }
  if (devices > problem.devices) return kNone;
  return {(m + p - 1) * longest + first_sync, (m - 1) * longest + sum + late,
          run_schedule(forward_s, backward_s, sync_s, static_cast<int>(m))};
}

std::set<int> members(unsigned bits) {
  std::set<int> layers;
  for (int l = 0; bits >> l != 0; ++l) {
    if ((bits >> l & 1U) != 0) layers.insert(l);
  }
  return layers;
}

/// The most layers of a set that are equally far down their longest paths in it.
int widest(const PhazeProblem& problem, const std::set<int>& layers) {
  std::map<int, int> depth, wide;
  int most = 1;
  for (const int l : layers) {
    for (const auto& [from, to] : problem.edges) {
      if (to == l && layers.count(from) != 0) depth[l] = std::max(depth[l], depth[from] + 1);
    }
    most = std::max(most, ++wide[depth[l]]);
  }
  return most;
}

/// Every ordered partition into stages that run in dependency order, every number of branches.
class PlacementBruteForce {
 public:
  PlacementBruteForce(const PhazeProblem& problem, bool branching)
      : problem_(problem),
        branching_(branching),
        all_((1U << problem.names.size()) - 1),
        needs_(problem.names.size(), 0) {
    for (const auto& [from, to] : problem.edges) needs_[static_cast<std::size_t>(to)] |= 1U << from;
    for (const PhazeWidth& width : problem.widths) {
      stage_.clear();
      extend(width, 0);
    }
  }
  const Times& best() const { return best_; }

 private:
  void extend(const PhazeWidth& width, unsigned taken) {
    if (taken == all_) {
      for (std::int64_t dp = 1; dp <= std::min(problem_.devices, problem_.micro_batches); ++dp) {
        const Times times = times_of(problem_, dp, stages_);
        for (std::size_t i = 0; i < times.size(); ++i) best_[i] = std::min(best_[i], times[i]);
      }
      return;
    }
    for (unsigned bits = 1; bits <= all_; ++bits) {
      if ((bits & taken) != 0 || !closed(taken, bits)) continue;
      const bool last = (bits | taken) == all_;
      for (const TestStage& stage : runs(width, bits, last)) {
        stages_.push_back(stage);
        extend(width, taken | bits);
        stages_.pop_back();
      }
    }
  }
  bool closed(unsigned taken, unsigned bits) const {
    for (std::size_t l = 0; l < needs_.size(); ++l) {
      if ((bits >> l & 1U) != 0 && (needs_[l] & ~(taken | bits)) != 0) return false;
    }
    return true;
  }
  /// With each number of branches.
  const std::vector<TestStage>& runs(const PhazeWidth& width, unsigned bits, bool last) {
    auto& found = stage_[{bits, last}];
    if (!found.empty()) return found;
    const std::set<int> layers = members(bits);
    const int most = branching_ ? widest(problem_, layers) : 1;
    for (int branches = 1; branches <= most; ++branches) {
      found.push_back(run_stage(problem_, width, layers, branches, last));
    }
    return found;
  }

  const PhazeProblem& problem_;
  bool branching_;
  unsigned all_;
  std::vector<unsigned> needs_;
  std::map<std::pair<unsigned, bool>, std::vector<TestStage>> stage_;
  std::vector<TestStage> stages_;
  Times best_ = {kInfinity, kInfinity, kInfinity};
};

/// What is in a placement, costed by the model above.
Times times_of(const PhazeProblem& problem, const PhazePlacement& placement) {
  const auto width =
      std::find_if(problem.widths.begin(), problem.widths.end(),
                   [&](const PhazeWidth& candidate) { return candidate.tp == placement.tp; });
  std::vector<TestStage> stages;
  for (std::size_t i = 0; i < placement.stages.size(); ++i) {
    const PhazeStage& stage = placement.stages[i];
    stages.push_back(run_stage(problem, *width, {stage.layers.begin(), stage.layers.end()},
                               stage.branches, i + 1 == placement.stages.size()));
  }
  return times_of(problem, placement.dp, stages);
}

/// General graphs and chains, one or two widths, memory that often binds; all objectives.
class PhazeBruteForce : public ::testing::TestWithParam<unsigned> {};

TEST_P(PhazeBruteForce, NothingIsBetter) {
  std::mt19937_64 random(GetParam());
  int feasible = 0;
  for (int n = 0; n < 1300; ++n) {
    const PhazeProblem problem = random_problem(random, n % 50 == 0 ? 5 : 4);
    const bool branching = pick(random, 0, 3) != 0;
    const Times best = PlacementBruteForce(problem, branching).best();
    for (std::size_t i = 0; i < best.size(); ++i) {
      const auto found = place_phaze(problem, {.objective = kObjectives[i], .branches = branching});
      ASSERT_EQ(found.has_value(), best[i] < kInfinity) << n;
      if (!found.has_value()) continue;
      if (i == 0) ++feasible;
      const double tolerance_s = 1e-9 * (1 + best[i]);
      const Times claimed = {found->program_s, found->flush_s, phaze_simulated_s(problem, *found)};
      ASSERT_NEAR(claimed[i], best[i], tolerance_s) << n;
      ASSERT_NEAR(found->bound_s, best[i], tolerance_s) << n;
      ASSERT_TRUE(found->fits(problem)) << n;
      const Times times = times_of(problem, *found);
      for (std::size_t k = 0; k < times.size(); ++k) {
        ASSERT_NEAR(times[k], claimed[k], 1e-9 * (1 + times[k])) << n;
      }
    }
  }
  EXPECT_GT(feasible, 650);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PhazeBruteForce, ::testing::Range(51U, 59U));

/// By every objective; and a batch with more micro-batches takes no less.
TEST(PhazePlacement, MoreDevicesMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(53);
  for (int n = 0; n < 1500; ++n) {
    const PhazeProblem problem = random_problem(random, n % 3 == 2 ? 5 : 6);
    const PhazeOptions options{.objective = kObjectives[static_cast<std::size_t>(n % 3)],
                               .branches = false};
    const auto time_s = [&](const PhazeProblem& changed) {
      const auto found = place_phaze(changed, options);
      return found.has_value() ? found->bound_s : kInfinity;
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
    more = problem;
    more.micro_batches += pick(random, 1, 3);
    ASSERT_GE(time_s(more), before_s * (1 - 1e-12)) << n;
  }
}

/// Place of each layer in a topological order drawn at random.
std::vector<std::int32_t> other_numbers(std::mt19937_64& random, const PhazeProblem& problem) {
  std::vector<std::int32_t> place(problem.names.size(), -1);
  for (std::int32_t next = 0; next < static_cast<std::int32_t>(place.size()); ++next) {
    std::vector<std::size_t> free;
    for (std::size_t l = 0; l < place.size(); ++l) {
      const bool waits =
          std::any_of(problem.edges.begin(), problem.edges.end(), [&](const auto& edge) {
            return static_cast<std::size_t>(edge.second) == l &&
                   place[static_cast<std::size_t>(edge.first)] < 0;
          });
      if (place[l] < 0 && !waits) free.push_back(l);
    }
    place[free[random() % free.size()]] = next;
  }
  return place;
}

/// Layers of a stage run in the order of their numbers, which can matter only to those that wait
/// for transfers or run in branches.
TEST(PhazePlacement, LayerNumbersDoNotMatterWhereNothingWaits) {
  std::mt19937_64 random(56);
  for (int n = 0; n < 400; ++n) {
    PhazeProblem problem = random_problem(random, 6);
    problem.recompute = false;  // Stashes the inputs, whose sizes would have to be kept.
    for (PhazeWidth& width : problem.widths) {
      std::fill(width.edge_bytes.begin(), width.edge_bytes.end(), 0);
    }
    const std::vector<std::int32_t> place = other_numbers(random, problem);
    PhazeProblem renumbered = problem;
    for (auto& [from, to] : renumbered.edges) {
      from = place[static_cast<std::size_t>(from)];
      to = place[static_cast<std::size_t>(to)];
    }
    std::sort(renumbered.edges.begin(), renumbered.edges.end());
    for (std::size_t w = 0; w < problem.widths.size(); ++w) {
      for (std::size_t l = 0; l < place.size(); ++l) {
        renumbered.widths[w].layers[static_cast<std::size_t>(place[l])] =
            problem.widths[w].layers[l];
      }
    }
    for (const PhazeObjective objective : kObjectives) {
      const PhazeOptions options{.objective = objective, .branches = false};
      const auto found = place_phaze(problem, options), again = place_phaze(renumbered, options);
      ASSERT_EQ(found.has_value(), again.has_value()) << n;
      if (!found.has_value()) continue;
      ASSERT_NEAR(found->bound_s, again->bound_s, 1e-9 * (1 + found->bound_s)) << n;
    }
  }
}

/// Each objective is the least of itself, and the exact time is at most the formula's.
TEST(PhazePlacement, TheFormulasAreUpperBounds) {
  std::mt19937_64 random(57);
  for (int n = 0; n < 1000; ++n) {
    const PhazeProblem problem = random_problem(random, 6);
    const auto flush = place_phaze(problem, {.branches = false});
    if (!flush.has_value()) continue;
    const double simulated_s = phaze_simulated_s(problem, *flush);
    ASSERT_LE(simulated_s, flush->flush_s * (1 + 1e-12)) << n;
    const auto exact =
        place_phaze(problem, {.objective = PhazeObjective::simulated, .branches = false});
    ASSERT_LE(exact->bound_s, simulated_s * (1 + 1e-12)) << n;
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

/// `layers` equal layers one after another, or side by side.
PhazeProblem equal_layers(int layers, bool chain) {
  PhazeProblem problem;
  problem.devices = 4096;
  problem.memory_bytes = 1e9;
  problem.bytes_per_s = 1;
  PhazeWidth width;
  for (int l = 0; l < layers; ++l) {
    problem.names.push_back(std::to_string(l));
    width.layers.push_back({1, 1, 1, 1, false});
    if (chain && l > 0) {
      problem.edges.emplace_back(l - 1, l);
      width.edge_bytes.push_back(1);
    }
  }
  problem.widths = {width};
  return problem;
}

TEST(PhazePlacement, RefusesWhatWouldTakeForEver) {
  EXPECT_THROW(place_phaze(equal_layers(2400, true), {}), Error);
}

/// A million million cuts: the work on all devices bounds what a few of them give.
TEST(PhazePlacement, LooksAtSomeCutsWhereThereAreTooMany) {
  PhazeProblem fan = equal_layers(40, false);
  fan.micro_batches = 4096;
  fan.devices = 64;
  const auto placed = place_phaze(fan, {});
  ASSERT_TRUE(placed.has_value());
  EXPECT_FALSE(placed->all_cuts);
  EXPECT_TRUE(placed->fits(fan));
  EXPECT_NEAR(placed->bound_s, 2.0 * 40 * 4096 / 64, 1e-6);
  EXPECT_LE(placed->flush_s, 1.25 * placed->bound_s);
  // 3 bytes a layer: weights, gradients and activations.
  fan.memory_bytes = 2;
  EXPECT_FALSE(place_phaze(fan, {}).has_value());
  EXPECT_EQ(phaze_shortfall(fan, {}).reason, "layer 0 alone needs 1 bytes more than a device has");
  fan.devices = 10;
  fan.memory_bytes = 11;
  EXPECT_FALSE(place_phaze(fan, {}).has_value());
  const PhazeShortfall together = phaze_shortfall(fan, {});
  EXPECT_TRUE(together.proven);
  EXPECT_EQ(together.reason,
            "each layer would fit alone, but all layers together hold 120 bytes, 10 more than all "
            "devices together");
  // In one stage, ten branches of four layers fit; in stages, others' micro-batches wait as well.
  fan.memory_bytes = 12;
  EXPECT_TRUE(place_phaze(fan, {}).has_value());
  const PhazeOptions stages_only{.branches = false};
  EXPECT_FALSE(place_phaze(fan, stages_only).has_value());
  const PhazeShortfall some = phaze_shortfall(fan, stages_only);
  EXPECT_FALSE(some.proven);
  EXPECT_NE(some.reason.find("four topological orders"), std::string::npos) << some.reason;
  EXPECT_NE(some.reason.find(" more than it has"), std::string::npos) << some.reason;
}

TEST(PhazePlacement, SomeCutsAreNoBetterThanAllAndTheirBoundHolds) {
  std::mt19937_64 random(77);
  int some = 0, as_good = 0, proven = 0, open = 0;
  for (int n = 0; n < 600; ++n) {
    const PhazeProblem problem = random_problem(random, 6);
    for (const PhazeObjective objective : kObjectives) {
      const auto best = place_phaze(problem, {.objective = objective});
      const PhazeOptions one{.objective = objective, .most_cuts = 1};
      const auto found = place_phaze(problem, one);
      if (!found.has_value()) {
        const PhazeShortfall shortfall = phaze_shortfall(problem, one);
        ASSERT_FALSE(shortfall.proven && best.has_value()) << n << shortfall.reason;
        (shortfall.proven ? proven : open) += 1;
        continue;
      }
      ASSERT_TRUE(best.has_value()) << n;
      ASSERT_FALSE(found->all_cuts);
      ASSERT_TRUE(found->fits(problem)) << n;
      const auto time_s = [&](const PhazePlacement& placement) {
        return objective == PhazeObjective::program ? placement.program_s
               : objective == PhazeObjective::flush ? placement.flush_s
                                                    : phaze_simulated_s(problem, placement);
      };
      const double best_s = time_s(*best);
      ++some;
      if (time_s(*found) <= best_s * (1 + 1e-9)) ++as_good;
      ASSERT_GE(time_s(*found), best_s * (1 - 1e-9)) << n;
      ASSERT_LE(found->bound_s, best_s * (1 + 1e-9)) << n;
    }
  }
  EXPECT_GT(some, 600);
  EXPECT_GT(as_good, some / 2);
  EXPECT_GT(proven, 50);
  EXPECT_GT(open, 10);
}

TEST(PhazePlacement, TellsHowFarItIs) {
  std::mt19937_64 random(78);
  std::int64_t calls = 0;
  for (int n = 0; n < 50; ++n) {
    const PhazeProblem problem = random_problem(random, 5);
    double last_s = kInfinity;
    const auto progress = [&](double best_s, double bound_s, std::int64_t work) {
      ++calls;
      EXPECT_LE(bound_s, best_s);
      EXPECT_LE(best_s, last_s);
      EXPECT_GE(work, 1);
      last_s = best_s;
    };
    place_phaze(problem, {.progress = progress});
  }
  EXPECT_GT(calls, 50);
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
  EXPECT_EQ(phaze_shortfall(problem, {}).reason,
            "layer large alone needs 7 bytes more than a device has");
  problem.memory_bytes = 107;
  EXPECT_TRUE(place_phaze(problem, {}).has_value());
  problem.devices = 1;
  problem.memory_bytes = 120;
  EXPECT_FALSE(place_phaze(problem, {}).has_value());
  // Both layers on one device: 2 · (10 + 50) of weights and gradients, 17 of activations.
  EXPECT_EQ(phaze_shortfall(problem, {}).reason,
            "each layer would fit alone, but the stages of every plan need more: stage 1 of the "
            "most frugal one (2 layers from first to large) needs 137 bytes of a device, 17 more "
            "than it has");
}

}  // namespace
}  // namespace braid
