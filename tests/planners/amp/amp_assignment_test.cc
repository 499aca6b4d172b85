#include <algorithm>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/infinity.h"
#include "braid/planners/amp/assignment.h"
#include "braid/planners/amp/synced_assignment.h"

#include "base/pick.h"
#include "base/reference_files.h"

namespace braid {
namespace {

using test::pick;

void for_each_split(int layers, int stages, const std::function<void(const Ends&)>& visit) {
  Ends ends;
  const std::function<void(int)> extend = [&](int begin) {
    if (static_cast<int>(ends.size()) + 1 == stages) {
      ends.push_back(layers);
      visit(ends);
      ends.pop_back();
      return;
    }
    for (int end = begin + 1; end < layers; ++end) {
      ends.push_back(end);
      extend(end);
      ends.pop_back();
    }
  };
  extend(0);
}

bool allowed(const AssignmentChain& chain, const Ends& ends) {
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto& first = chain.stages[i].first_allowed;
    if (!first.empty() && begin < first[static_cast<std::size_t>(ends[i])]) return false;
    begin = ends[i];
  }
  return true;
}

/// Equation 5 by its words, without running sums.
double by_definition(const AssignmentChain& chain,
                     const std::vector<std::vector<double>>& stage_layers_s, const Ends& ends) {
  double longest = 0, sum = 0;
  std::int32_t layer = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    double time = 0;
    for (; layer < ends[i]; ++layer) time += stage_layers_s[i][static_cast<std::size_t>(layer)];
    longest = std::max(longest, time);
    sum += time;
    if (i + 1 < ends.size()) {
      sum += chain.boundary_s[static_cast<std::size_t>(layer - 1) * (ends.size() - 1) + i];
    }
  }
  return sum + longest * static_cast<double>(chain.micro_batches - 1);
}

double brute_force(const AssignmentChain& chain,
                   const std::vector<std::vector<double>>& stage_layers_s) {
  double best = kInfinity;
  for_each_split(static_cast<int>(chain.layers()), static_cast<int>(chain.stages.size()),
                 [&](const Ends& ends) {
                   if (!allowed(chain, ends)) return;
                   best = std::min(best, by_definition(chain, stage_layers_s, ends));
                 });
  return best;
}

struct RandomChain {
  std::vector<std::vector<double>> stage_layers_s;
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<std::int32_t>> first;
  AssignmentChain chain;
};

/// Small whole numbers make ties, long handovers and idle layers common.
RandomChain random_chain(std::mt19937_64& random) {
  RandomChain made;
  const int layers = pick(random, 1, 9);
  const int stages = pick(random, 1, std::min(layers + 1, 5));
  const bool alike = pick(random, 0, 1) == 0;
  const int longest_handover = pick(random, 0, 1) * pick(random, 1, 30);
  const bool memory = pick(random, 0, 2) == 0;
  std::vector<double> bytes;
  for (int l = 0; l < layers; ++l) bytes.push_back(pick(random, 0, 5));
  for (int i = 0; i < stages; ++i) {
    std::vector<double> times;
    for (int l = 0; l < layers; ++l) times.push_back(pick(random, 0, 12));
    if (alike && i > 0) times = made.stage_layers_s.front();
    made.sums.push_back(running_sums(times));
    made.stage_layers_s.push_back(times);
    made.first.push_back(first_fitting(bytes, pick(random, 3, 20)));
  }
  for (int i = 0; i < stages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    made.chain.stages.push_back({made.sums[at], {}});
    if (memory) made.chain.stages.back().first_allowed = made.first[at];
  }
  for (int n = 0; n < (layers - 1) * (stages - 1); ++n) {
    made.chain.boundary_s.push_back(pick(random, 0, longest_handover));
  }
  made.chain.micro_batches = pick(random, 0, 2) == 0 ? 1 : pick(random, 1, 12);
  return made;
}

TEST(AmpAssignment, IsTheBestOfAllSplits) {
  std::mt19937_64 random(20261);
  int feasible = 0;
  for (int n = 0; n < 12000; ++n) {
    const RandomChain made = random_chain(random);
    const double best = brute_force(made.chain, made.stage_layers_s);
    const auto found = assign_layers(made.chain);
    ASSERT_EQ(found.has_value(), best < kInfinity) << n;
    if (!found.has_value()) continue;
    ++feasible;
    ASSERT_TRUE(allowed(made.chain, found->ends));
    ASSERT_NEAR(found->pipeline_s, best, 1e-9) << n;
    ASSERT_NEAR(by_definition(made.chain, made.stage_layers_s, found->ends), best, 1e-9);
  }
  EXPECT_GT(feasible, 8000);
}

/// The whole cost of AMP's model: what is slowest to synchronise comes after the pipeline.
TEST(AmpSyncedAssignment, IsTheBestOfAllSplits) {
  std::mt19937_64 random(20265);
  int feasible = 0, other_split = 0;
  for (int n = 0; n < 12000; ++n) {
    const RandomChain made = random_chain(random);
    const auto layers = static_cast<int>(made.chain.layers());
    const int longest = pick(random, 0, 60);
    std::vector<std::vector<double>> sums;
    for (std::size_t i = 0; i < made.chain.stages.size(); ++i) {
      std::vector<double> syncs;
      for (int l = 0; l < layers; ++l) syncs.push_back(pick(random, 0, longest));
      sums.push_back(i > 0 && n % 2 == 0 ? sums.front() : running_sums(syncs));
    }
    double best = kInfinity;
    const auto sync_of = [&](const Ends& ends) {
      double sync = 0;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        const auto begin = static_cast<std::size_t>(i > 0 ? ends[i - 1] : 0);
        sync = std::max(sync, sums[i][static_cast<std::size_t>(ends[i])] - sums[i][begin]);
      }
      return sync;
    };
    for_each_split(layers, static_cast<int>(made.chain.stages.size()), [&](const Ends& ends) {
      if (!allowed(made.chain, ends)) return;
      best = std::min(best, by_definition(made.chain, made.stage_layers_s, ends) + sync_of(ends));
    });
    const auto found = assign_layers_and_sync(made.chain, {sums.begin(), sums.end()});
    ASSERT_EQ(found.has_value(), best < kInfinity) << n;
    if (!found.has_value()) continue;
    ++feasible;
    ASSERT_TRUE(allowed(made.chain, found->ends)) << n;
    ASSERT_NEAR(found->cost_s(), best, 1e-9) << n;
    ASSERT_NEAR(found->pipeline_s, by_definition(made.chain, made.stage_layers_s, found->ends),
                1e-9);
    ASSERT_EQ(found->sync_s, sync_of(found->ends)) << n;
    const auto alone = assign_layers(made.chain);
    other_split += alone->pipeline_s + sync_of(alone->ends) > best + 1e-9 ? 1 : 0;
  }
  EXPECT_GT(feasible, 8000);
  EXPECT_GT(other_split, 500);
}

struct RandomTypes {
  TypedChain chain;
  std::vector<std::vector<double>> type_layers_s;
};

RandomTypes random_types(std::mt19937_64& random) {
  RandomTypes made;
  const int layers = pick(random, 1, 7);
  const int types = pick(random, 1, 3);
  int available = 0;
  std::vector<double> bytes;
  for (int l = 0; l < layers; ++l) bytes.push_back(pick(random, 0, 5));
  const bool memory = pick(random, 0, 2) == 0;
  std::vector<int> counts;
  for (int t = 0; t < types; ++t) counts.push_back(pick(random, t == 0 ? 1 : 0, 2));
  for (const int count : counts) available += count;
  made.chain.stages = pick(random, 1, std::min(available, 4));
  for (int t = 0; t < types; ++t) {
    std::vector<double> times;
    for (int l = 0; l < layers; ++l) times.push_back(pick(random, 0, 12));
    StageType type;
    type.count = counts[static_cast<std::size_t>(t)];
    type.time_before_s = running_sums(times);
    for (int i = 0; memory && i < made.chain.stages; ++i) {
      type.first_allowed.push_back(first_fitting(bytes, pick(random, 4, 20)));
    }
    made.type_layers_s.push_back(times);
    made.chain.types.push_back(type);
  }
  for (int l = 1; l < layers; ++l) made.chain.boundary_bytes.push_back(pick(random, 0, 5));
  for (int n = 0; n < types * types; ++n) made.chain.s_per_byte.push_back(pick(random, 0, 4));
  made.chain.micro_batches = pick(random, 1, 9);
  return made;
}

TEST(AmpAssignment, OfTypesIsTheBestOfAllOrdersAndSplits) {
  std::mt19937_64 random(20262);
  for (int n = 0; n < 10000; ++n) {
    const RandomTypes made = random_types(random);
    const auto stages = static_cast<std::size_t>(made.chain.stages);
    double best = kInfinity;
    std::vector<std::int32_t> order;
    std::vector<std::int32_t> left;
    for (const StageType& type : made.chain.types) left.push_back(type.count);
    const std::function<void()> extend = [&] {
      if (order.size() == stages) {
        const AssignmentChain fixed = with_types(made.chain, order);
        std::vector<std::vector<double>> layers_s;
        layers_s.reserve(order.size());
        for (const auto type : order) {
          layers_s.push_back(made.type_layers_s[static_cast<std::size_t>(type)]);
        }
        best = std::min(best, brute_force(fixed, layers_s));
        return;
      }
      for (std::size_t type = 0; type < left.size(); ++type) {
        if (left[type] == 0) continue;
        --left[type];
        order.push_back(static_cast<std::int32_t>(type));
        extend();
        order.pop_back();
        ++left[type];
      }
    };
    extend();
    const auto found = assign_layers_and_types(made.chain);
    ASSERT_EQ(found.has_value(), best < kInfinity) << n;
    if (!found.has_value()) continue;
    ASSERT_NEAR(found->pipeline_s, best, 1e-9) << n;
    ASSERT_TRUE(allowed(with_types(made.chain, found->type), found->ends));
    for (std::size_t type = 0; type < made.chain.types.size(); ++type) {
      ASSERT_LE(std::count(found->type.begin(), found->type.end(), static_cast<int>(type)),
                made.chain.types[type].count);
    }
  }
}

TEST(AmpAssignment, ScalesWithTimeAndMirrors) {
  std::mt19937_64 random(20263);
  for (int n = 0; n < 500; ++n) {
    const RandomChain made = random_chain(random);
    const auto found = assign_layers(made.chain);
    if (!found.has_value()) continue;
    AssignmentChain scaled = made.chain;
    std::vector<std::vector<double>> sums = made.sums;
    for (auto& stage : sums) {
      for (double& time : stage) time *= 1024;
    }
    for (double& time : scaled.boundary_s) time *= 1024;
    for (std::size_t i = 0; i < sums.size(); ++i) scaled.stages[i].time_before_s = sums[i];
    ASSERT_DOUBLE_EQ(assign_layers(scaled)->pipeline_s, 1024 * found->pipeline_s);

    // Read backwards, a pipeline without memory limits takes as long.
    AssignmentChain forwards = made.chain, backwards;
    for (auto& stage : forwards.stages) stage.first_allowed = {};
    const std::size_t stages = forwards.stages.size(), layers = forwards.layers();
    std::vector<std::vector<double>> mirrored;
    for (std::size_t i = 0; i < stages; ++i) {
      auto times = made.stage_layers_s[stages - 1 - i];
      std::reverse(times.begin(), times.end());
      mirrored.push_back(running_sums(times));
    }
    for (const auto& times : mirrored) backwards.stages.push_back({times, {}});
    backwards.micro_batches = forwards.micro_batches;
    backwards.boundary_s = forwards.boundary_s;
    std::reverse(backwards.boundary_s.begin(), backwards.boundary_s.end());
    if (layers < stages) continue;
    ASSERT_NEAR(assign_layers(forwards)->pipeline_s, assign_layers(backwards)->pipeline_s, 1e-9);
  }
}

TEST(AmpAssignment, MoreMemoryAndAFasterStageNeverHurt) {
  std::mt19937_64 random(20264);
  for (int n = 0; n < 2000; ++n) {
    const RandomChain made = random_chain(random);
    const auto found = assign_layers(made.chain);
    AssignmentChain freer = made.chain;
    for (auto& stage : freer.stages) stage.first_allowed = {};
    const auto without_limits = assign_layers(freer);
    const auto at = static_cast<std::size_t>(random() % made.chain.stages.size());
    std::vector<double> faster = made.sums[at];
    for (double& time : faster) time /= 2;
    AssignmentChain quicker = made.chain;
    quicker.stages[at].time_before_s = faster;
    const auto with_faster_stage = assign_layers(quicker);
    if (!found.has_value()) continue;
    ASSERT_LE(without_limits->pipeline_s, found->pipeline_s + 1e-9);
    ASSERT_LE(with_faster_stage->pipeline_s, found->pipeline_s + 1e-9);
  }
}

TEST(AmpAssignment, SplitsALongChainEvenly) {
  const std::vector<double> sums = running_sums(std::vector<double>(4096, 1.0));
  AssignmentChain chain;
  for (int i = 0; i < 64; ++i) chain.stages.push_back({sums, {}});
  chain.boundary_s.assign(4095UL * 63, 0.25);
  chain.micro_batches = 100;
  EXPECT_DOUBLE_EQ(assign_layers(chain)->pipeline_s, 99 * 64 + 4096 + 63 * 0.25);
}

/// Sums of equal times that binary fractions cannot hold differ in their last digits.
TEST(AmpAssignment, IsNotLedAstrayByRounding) {
  const std::vector<double> sums = running_sums(std::vector<double>(300, 0.1));
  for (const std::int64_t micro_batches : {1, 2, 64}) {
    AssignmentChain chain;
    for (int i = 0; i < 12; ++i) chain.stages.push_back({sums, {}});
    chain.boundary_s.assign(299UL * 11, 0.03);
    chain.micro_batches = micro_batches;
    EXPECT_NEAR(assign_layers(chain)->pipeline_s,
                static_cast<double>(micro_batches - 1) * 2.5 + 30 + 11 * 0.03, 1e-9);
  }
}

/// Instances and optima of the AMP experiments (Li et al. 2022).
TEST(AmpAssignment, MatchesThePublishedInstances) {
  const std::string folder = reference_file("reference/amp");
  if (folder.empty()) GTEST_SKIP() << "reference data not present";
  const Document document = Document::parse_file(folder + "/layer_assignment_instances.json");
  int below_amp = 0, count = 0;
  for (const Value& instance : document.root().elements()) {
    std::vector<double> times;
    for (const Value& time : instance["cost_e"].elements()) times.push_back(time.as_double());
    const std::vector<double> sums = running_sums(times);
    AssignmentChain chain;
    for (std::int64_t i = 0; i < instance["pp"].as_int(); ++i) chain.stages.push_back({sums, {}});
    for (const Value& row : instance["cost_c"].elements()) {
      for (const Value& time : row.elements()) chain.boundary_s.push_back(time.as_double());
    }
    chain.micro_batches = instance["B"].as_int();
    const auto found = assign_layers(chain);
    ASSERT_TRUE(found.has_value());
    const double optimum = instance["opt_obj"].as_double();
    ASSERT_NEAR(found->pipeline_s, optimum, 1e-9 * optimum) << count;
    ASSERT_LE(found->pipeline_s, instance["amp_obj"].as_double() * (1 + 1e-12));
    if (found->pipeline_s < instance["amp_obj"].as_double() * (1 - 1e-9)) ++below_amp;
    ++count;
  }
  EXPECT_EQ(count, 171);
  EXPECT_GE(below_amp, 20);
}

}  // namespace
}  // namespace braid
