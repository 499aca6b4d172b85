#include "braid/planners/amp_graph_assignment.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/planners/amp_assignment.h"

namespace braid {
namespace {

int pick(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

AssignmentGraph random_graph(std::mt19937_64& random, bool chain) {
  AssignmentGraph graph;
  const int layers = pick(random, 1, 6), stages = pick(random, 1, 4);
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
  if (pick(random, 0, 1) == 0) return graph;
  for (int i = 0; i < stages; ++i) {
    auto& bytes = graph.layer_bytes.emplace_back();
    for (int l = 0; l < layers; ++l) bytes.push_back(pick(random, 0, 5));
    graph.available_bytes.push_back(pick(random, 3, 20));
  }
  return graph;
}

bool fits(const AssignmentGraph& graph, const std::vector<std::vector<std::int32_t>>& stages) {
  for (std::size_t i = 0; i < graph.layer_bytes.size(); ++i) {
    double bytes = 0;
    for (const std::int32_t layer : stages[i]) {
      bytes += graph.layer_bytes[i][static_cast<std::size_t>(layer)];
    }
    if (bytes > graph.available_bytes[i]) return false;
  }
  return true;
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
      best = std::min(best, amp_pipeline_s(graph, made));
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
    ASSERT_NEAR(found->pipeline_s, best, 1e-9) << n;
  }
  EXPECT_GT(by_memory, 300);
}

TEST(AmpGraphAssignment, MoreMemoryAndBandwidthNeverHurt) {
  std::mt19937_64 random(94);
  int faster = 0;
  for (int n = 0; n < 1000; ++n) {
    const AssignmentGraph graph = random_graph(random, false);
    const auto time_s = [](const AssignmentGraph& changed) {
      const auto found = assign_graph(changed);
      return found.has_value() ? found->pipeline_s : std::numeric_limits<double>::infinity();
    };
    const double before_s = time_s(graph);
    AssignmentGraph more = graph;
    for (double& bytes : more.available_bytes) bytes += 3;
    const double with_memory_s = time_s(more);
    ASSERT_LE(with_memory_s, before_s) << n;
    faster += with_memory_s < before_s ? 1 : 0;
    more = graph;
    for (double& s_per_byte : more.s_per_byte) s_per_byte /= 2;
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
      for (std::size_t s = 0; s < graph.layer_s.size(); ++s) {
        renumbered.layer_s[s][at] = graph.layer_s[s][l];
        if (!graph.layer_bytes.empty()) renumbered.layer_bytes[s][at] = graph.layer_bytes[s][l];
      }
    }
    const auto found = assign_graph(graph), again = assign_graph(renumbered);
    ASSERT_EQ(found.has_value(), again.has_value()) << n;
    if (found.has_value()) {
      ASSERT_NEAR(found->pipeline_s, again->pipeline_s, 1e-9) << n;
    }
  }
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
