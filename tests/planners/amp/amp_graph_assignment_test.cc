#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/amp/assignment.h"
#include "braid/search/graph_assignment.h"
#include "braid/search/graph_bound.h"
#include "braid/search/symmetric_branches.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;

AssignmentGraph random_graph(std::mt19937_64& random, bool chain) {
  AssignmentGraph graph;
  const int layers = pick(random, 1, 5), stages = pick(random, 1, 4);
  for (int l = 0; l < layers; ++l) {
    graph.output_bytes.push_back(pick(random, 0, 9));
    for (int before = 0; before < l; ++before) {
      if (chain ? before + 1 == l : pick(random, 0, 2) == 0) graph.edges.emplace_back(before, l);
    }
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  const bool alike = pick(random, 0, 1) == 0;
  for (int i = 0; i < stages; ++i) {
    std::vector<double> times_s;
    for (int l = 0; l < layers; ++l) times_s.push_back(pick(random, 0, 9));
    graph.layer_s.push_back(alike && i > 0 ? graph.layer_s.front() : times_s);
    if (i > 0) graph.s_per_byte.push_back(pick(random, 0, 3));
  }
  graph.micro_batches = pick(random, 1, 9);
  if (!chain && pick(random, 0, 2) == 0) {
    for (int i = 1; i < stages; ++i) graph.latency_s.push_back(pick(random, 0, 3));
  }
  if (!chain && pick(random, 0, 1) == 0) {
    for (int l = 0; l < layers; ++l) graph.sync_s.push_back(pick(random, 0, 20));
    for (int i = 0; i < stages && !alike; ++i) graph.sync_pace.push_back(pick(random, 1, 3));
  }
  if (!chain && pick(random, 0, 2) == 0) {
    // The slower of two links, as where a stage's replicas are in several places.
    const double late_s = pick(random, 0, 9);
    graph.handover_s = [late_s, rates = graph.s_per_byte](std::size_t stage, double bytes) {
      return bytes > 0 ? std::max(late_s, 2 * rates[stage] * bytes) : 0;
    };
  }
  if (pick(random, 0, 1) == 0) return graph;
  for (int i = 0; i < stages; ++i) {
    auto& bytes = graph.layer_bytes.emplace_back();
    for (int l = 0; l < layers; ++l) bytes.push_back(pick(random, 0, 5));
    graph.available_bytes.push_back(pick(random, 3, 20));
  }
  for (int purpose = pick(random, 0, 2); purpose > 0; --purpose) {
    auto& bytes = graph.largest_bytes.emplace_back();
    for (int l = 0; l < layers; ++l) bytes.push_back(pick(random, 0, 4));
  }
  return graph;
}

bool fits(const AssignmentGraph& graph, const std::vector<std::vector<std::int32_t>>& stages) {
  for (std::size_t i = 0; i < graph.layer_bytes.size(); ++i) {
    double bytes = 0;
    for (const std::int32_t layer : stages[i]) {
      bytes += graph.layer_bytes[i][static_cast<std::size_t>(layer)];
    }
    for (const std::vector<double>& of_layers : graph.largest_bytes) {
      double largest = 0;
      for (const std::int32_t layer : stages[i]) {
        largest = std::max(largest, of_layers[static_cast<std::size_t>(layer)]);
      }
      bytes += largest;
    }
    if (bytes > graph.available_bytes[i]) return false;
  }
  return true;
}

double sync_s(const AssignmentGraph& graph, const std::vector<std::vector<std::int32_t>>& stages) {
  double longest_s = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    double stage_s = 0;
    for (const std::int32_t layer : stages[i]) {
      stage_s += graph.sync_s.empty() ? 0 : graph.sync_s[static_cast<std::size_t>(layer)];
    }
    if (!graph.sync_pace.empty()) stage_s *= graph.sync_pace[i];
    longest_s = std::max(longest_s, stage_s);
  }
  return longest_s;
}

/// Every way to give each layer a stage such that edges never lead back.
double brute_force(const AssignmentGraph& graph) {
  const std::size_t layers = graph.output_bytes.size(), stages = graph.layer_s.size();
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> stage_of(layers, 0);
  const std::function<void(std::size_t)> extend = [&](std::size_t layer) {
    if (layer == layers) {
      std::vector<std::vector<std::int32_t>> made(stages);
      for (std::size_t l = 0; l < layers; ++l) {
        made[stage_of[l]].push_back(static_cast<std::int32_t>(l));
      }
      for (const auto& stage : made) {
        if (stage.empty()) return;
      }
      if (!fits(graph, made)) return;
      best = std::min(best, amp_pipeline_s(graph, made) + sync_s(graph, made));
      return;
    }
    std::size_t first = 0;
    for (const auto& [source, target] : graph.edges) {
      if (static_cast<std::size_t>(target) == layer) {
        first = std::max(first, stage_of[static_cast<std::size_t>(source)]);
      }
    }
    for (stage_of[layer] = first; stage_of[layer] < stages; ++stage_of[layer]) extend(layer + 1);
  };
  extend(0);
  return best;
}

TEST(AmpGraphAssignment, IsTheBestOfAllAssignments) {
  std::mt19937_64 random(91);
  int by_memory = 0;
  for (int n = 0; n < 10000; ++n) {
    const AssignmentGraph graph = random_graph(random, false);
    const auto found = assign_graph(graph);
    const double best = brute_force(graph);
    ASSERT_EQ(found.has_value(), best < std::numeric_limits<double>::infinity()) << n;
    const bool stages_enough = graph.output_bytes.size() >= graph.layer_s.size();
    by_memory += stages_enough && !found.has_value() ? 1 : 0;
    if (!found.has_value()) continue;
    ASSERT_TRUE(fits(graph, found->stages)) << n;
    ASSERT_NEAR(found->cost_s(), best, 1e-9) << n;
    ASSERT_NEAR(found->sync_s, sync_s(graph, found->stages), 1e-9) << n;
    if (n % 4 != 0) continue;
    // Nothing is missed by a limit just above, nothing found below one.
    const Dag dag = make_dag(graph.output_bytes.size(), graph.edges);
    const auto cuts = graph_cuts(dag, 100);
    ASSERT_TRUE(cuts.has_value());
    const auto crossing = cuts->crossing(dag, graph.output_bytes);
    EXPECT_TRUE(assign_graph(graph, *cuts, crossing, best + 1e-3).has_value()) << n;
    EXPECT_FALSE(assign_graph(graph, *cuts, crossing, best).has_value()) << n;
  }
  EXPECT_GT(by_memory, 300);
}

/// A few kinds of layers in branches between a first and a last layer, drawn with repeats.
AssignmentGraph alike_graph(std::mt19937_64& random, std::vector<std::size_t>& label) {
  AssignmentGraph graph;
  const auto kinds = static_cast<std::size_t>(pick(random, 2, 3));
  const int stages = pick(random, 1, 4);
  std::vector<std::vector<double>> of_kind(kinds);  // Time, output, bytes, working bytes, sync.
  for (auto& values : of_kind) {
    for (int i = 0; i < 5; ++i) values.push_back(pick(random, 0, 9));
  }
  const auto add = [&](std::size_t kind) { label.push_back(kind); };
  const bool has_first = pick(random, 0, 1) == 0, has_last = pick(random, 0, 1) == 0;
  if (has_first) add(0);
  std::vector<std::int32_t> ends;
  std::vector<std::size_t> branch;
  for (int b = pick(random, 2, 4); b > 0 && label.size() < 8; --b) {
    if (branch.empty() || pick(random, 0, 2) == 0) {
      branch.assign(static_cast<std::size_t>(pick(random, 1, 3)), 0);
      for (std::size_t& kind : branch) kind = random() % kinds;
    }
    for (std::size_t i = 0; i < branch.size(); ++i) {
      const auto layer = static_cast<std::int32_t>(label.size());
      if (i > 0) graph.edges.emplace_back(layer - 1, layer);
      if (i == 0 && has_first) graph.edges.emplace_back(0, layer);
      add(branch[i]);
    }
    ends.push_back(static_cast<std::int32_t>(label.size()) - 1);
  }
  if (has_last) {
    for (const std::int32_t end : ends) {
      graph.edges.emplace_back(end, static_cast<std::int32_t>(label.size()));
    }
    add(kinds - 1);
  }
  const auto column = [&](std::size_t value) {
    std::vector<double> values;
    for (const std::size_t kind : label) values.push_back(of_kind[kind][value]);
    return values;
  };
  graph.output_bytes = column(1);
  graph.sync_s = column(4);
  for (int i = 0; i < stages; ++i) {
    graph.layer_s.push_back(column(0));
    if (i > 0) graph.s_per_byte.push_back(pick(random, 0, 3));
    graph.layer_bytes.push_back(column(2));
    for (double& bytes : graph.layer_bytes.back()) bytes *= stages - i;
    graph.available_bytes.push_back(pick(random, 10, 60));
  }
  graph.largest_bytes = {column(3)};
  graph.micro_batches = pick(random, 1, 9);
  return graph;
}

TEST(AmpGraphAssignment, LosesNothingByTakingAlikeBranchesInTurn) {
  std::mt19937_64 random(95);
  int fewer = 0, found = 0;
  for (int n = 0; n < 1500; ++n) {
    std::vector<std::size_t> label;
    const AssignmentGraph graph = alike_graph(random, label);
    const Dag dag = make_dag(label.size(), graph.edges);
    const auto all = graph_cuts(dag, 20000);
    auto edges = graph.edges;
    for (const auto& edge : symmetry_breaking_edges(label, graph.edges)) edges.push_back(edge);
    const auto some = graph_cuts(make_dag(label.size(), edges), 20000);
    ASSERT_TRUE(all.has_value() && some.has_value());
    fewer += some->sets.size() < all->sets.size() ? 1 : 0;
    const auto best = assign_graph(graph, *all, all->crossing(dag, graph.output_bytes));
    const auto in_turn = assign_graph(graph, *some, some->crossing(dag, graph.output_bytes));
    ASSERT_EQ(best.has_value(), in_turn.has_value()) << n;
    if (!best.has_value()) continue;
    ++found;
    ASSERT_NEAR(best->cost_s(), in_turn->cost_s(), 1e-9 * best->cost_s()) << n;
    ASSERT_TRUE(fits(graph, in_turn->stages)) << n;
  }
  EXPECT_GT(fewer, 500);
  EXPECT_GT(found, 500);
}

TEST(AlikeBranches, HaveAsManyCutsAsTablesAndOne) {
  const std::vector<std::size_t> label(20, 7);
  const auto cuts = graph_cuts(make_dag(20, symmetry_breaking_edges(label, {})), 100);
  ASSERT_TRUE(cuts.has_value());
  EXPECT_EQ(cuts->sets.size(), 21U);
}

TEST(AmpGraphAssignment, MoreMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(94);
  int faster = 0;
  for (int n = 0; n < 1000; ++n) {
    const AssignmentGraph graph = random_graph(random, false);
    const auto time_s = [](const AssignmentGraph& changed) {
      const auto found = assign_graph(changed);
      return found.has_value() ? found->cost_s() : std::numeric_limits<double>::infinity();
    };
    const double before_s = time_s(graph);
    AssignmentGraph more = graph;
    for (double& bytes : more.available_bytes) bytes += 3;
    const double with_memory_s = time_s(more);
    ASSERT_LE(with_memory_s, before_s) << n;
    faster += with_memory_s < before_s ? 1 : 0;
    more = graph;
    for (double& s_per_byte : more.s_per_byte) s_per_byte /= 2;
    if (more.handover_s) {
      more.handover_s = [&](std::size_t stage, double bytes) {
        return graph.handover_s(stage, bytes) / 2;
      };
    }
    ASSERT_LE(time_s(more), before_s) << n;
  }
  EXPECT_GT(faster, 50);
}

TEST(AmpGraphAssignment, IsTheChainsOnChains) {
  std::mt19937_64 random(92);
  for (int n = 0; n < 1000; ++n) {
    AssignmentGraph graph = random_graph(random, true);
    graph.layer_bytes.clear();
    graph.available_bytes.clear();
    std::vector<std::vector<double>> sums;
    for (const auto& times_s : graph.layer_s) sums.push_back(running_sums(times_s));
    AssignmentChain chain;
    chain.micro_batches = graph.micro_batches;
    for (const auto& before_s : sums) chain.stages.push_back({before_s, {}});
    for (std::size_t l = 0; l + 1 < graph.output_bytes.size(); ++l) {
      for (const double s_per_byte : graph.s_per_byte) {
        chain.boundary_s.push_back(graph.output_bytes[l] * s_per_byte);
      }
    }
    const auto found = assign_graph(graph);
    const auto of_chain = assign_layers(chain);
    ASSERT_EQ(found.has_value(), of_chain.has_value());
    if (!found.has_value()) continue;
    ASSERT_NEAR(found->pipeline_s, of_chain->pipeline_s, 1e-9);
  }
}

/// Place of each layer in a topological order drawn at random.
std::vector<std::int32_t> other_numbers(std::mt19937_64& random, const AssignmentGraph& graph) {
  std::vector<std::int32_t> place(graph.output_bytes.size(), -1);
  for (std::int32_t next = 0; next < static_cast<std::int32_t>(place.size()); ++next) {
    std::vector<std::size_t> free;
    for (std::size_t l = 0; l < place.size(); ++l) {
      const bool waits = std::any_of(graph.edges.begin(), graph.edges.end(), [&](const auto& edge) {
        return static_cast<std::size_t>(edge.second) == l &&
               place[static_cast<std::size_t>(edge.first)] < 0;
      });
      if (place[l] < 0 && !waits) free.push_back(l);
    }
    place[free[random() % free.size()]] = next;
  }
  return place;
}

TEST(AmpGraphAssignment, LayerNumbersDoNotMatter) {
  std::mt19937_64 random(93);
  for (int n = 0; n < 1000; ++n) {
    const AssignmentGraph graph = random_graph(random, false);
    const std::vector<std::int32_t> place = other_numbers(random, graph);
    AssignmentGraph renumbered = graph;
    for (auto& [source, target] : renumbered.edges) {
      source = place[static_cast<std::size_t>(source)];
      target = place[static_cast<std::size_t>(target)];
    }
    for (std::size_t l = 0; l < place.size(); ++l) {
      const auto at = static_cast<std::size_t>(place[l]);
      renumbered.output_bytes[at] = graph.output_bytes[l];
      if (!graph.sync_s.empty()) renumbered.sync_s[at] = graph.sync_s[l];
      for (std::size_t i = 0; i < graph.largest_bytes.size(); ++i) {
        renumbered.largest_bytes[i][at] = graph.largest_bytes[i][l];
      }
      for (std::size_t s = 0; s < graph.layer_s.size(); ++s) {
        renumbered.layer_s[s][at] = graph.layer_s[s][l];
        if (!graph.layer_bytes.empty()) renumbered.layer_bytes[s][at] = graph.layer_bytes[s][l];
      }
    }
    const auto found = assign_graph(graph), again = assign_graph(renumbered);
    ASSERT_EQ(found.has_value(), again.has_value()) << n;
    if (found.has_value()) {
      ASSERT_NEAR(found->cost_s(), again->cost_s(), 1e-9) << n;
    }
  }
}

/// The bound of all assignments, in parts and in any order, is one of those.
TEST(AmpGraphBound, IsNoMoreThanTheBestAssignment) {
  std::mt19937_64 random(96);
  int attained = 0;
  for (int n = 0; n < 2000; ++n) {
    AssignmentGraph graph = random_graph(random, false);
    graph.layer_bytes.clear();
    graph.available_bytes.clear();
    graph.largest_bytes.clear();
    const auto found = assign_graph(graph);
    if (!found.has_value()) continue;
    std::vector<StagePace> paces;
    for (const auto& layer_s : graph.layer_s) paces.push_back({layer_s, 1});
    const auto repeats = static_cast<double>(graph.micro_batches - 1);
    const double bound_s = least_pipeline_s(paces, 1, repeats);
    ASSERT_LE(bound_s, found->cost_s()) << n;
    attained += bound_s > found->cost_s() * (1 - 1e-9) ? 1 : 0;
    double longest_s = 0;
    for (std::size_t i = 0; i < found->stages.size(); ++i) {
      double stage_s = 0;
      for (const std::int32_t layer : found->stages[i]) {
        stage_s += graph.layer_s[i][static_cast<std::size_t>(layer)];
      }
      longest_s = std::max(longest_s, stage_s);
    }
    ASSERT_LE(least_pipeline_s(paces, 0, 1), longest_s) << n;
  }
  EXPECT_GT(attained, 200);
}

TEST(AmpGraphBound, IsTheEvenSplitOverStagesThatDifferByAFactor) {
  const std::vector<double> slow = {6, 12, 18}, fast = {2, 4, 6};
  // 9/12 of the layers on the fast stage, the rest on the slow one, 9 s on each.
  const StagePace both[] = {{slow, 1}, {fast, 1}};
  EXPECT_NEAR(least_pipeline_s(both, 0, 1), 9, 1e-9);
  // What the fast stage is rid of takes three times as long on the slow one, so that one is of use
  // only where the longest stage counts more than twice.
  EXPECT_NEAR(least_pipeline_s(both, 1, 1), 24, 1e-9);
  EXPECT_NEAR(least_pipeline_s(both, 1, 7), 18 + 7 * 9, 1e-9);
}

TEST(AmpGraphAssignment, RefusesGraphsWithTooManyCuts) {
  AssignmentGraph graph;
  graph.output_bytes.assign(40, 1);
  graph.layer_s.assign(2, std::vector<double>(40, 1));
  graph.s_per_byte = {1};
  EXPECT_THROW(assign_graph(graph), Error);
}

}  // namespace
}  // namespace braid
