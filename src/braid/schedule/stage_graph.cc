#include "braid/schedule/stage_graph.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "braid/base/error.h"
#include "braid/schedule/schedule.h"

namespace braid {
namespace {

std::string stage_name(std::int64_t stage) { return "stage " + std::to_string(stage + 1); }

EdgeGroups group_edges(const StageGraph& graph, std::int32_t StageEdge::*end) {
  EdgeGroups groups;
  groups.first.assign(graph.stages.size() + 1, 0);
  for (const StageEdge& edge : graph.edges) ++groups.first[static_cast<std::size_t>(edge.*end) + 1];
  std::partial_sum(groups.first.begin(), groups.first.end(), groups.first.begin());
  groups.edges.resize(graph.edges.size());
  std::vector<std::size_t> next(groups.first.begin(), groups.first.end() - 1);
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    groups.edges[next[static_cast<std::size_t>(graph.edges[e].*end)]++] = e;
  }
  return groups;
}

void check_stages(const StageGraph& graph) {
  std::int64_t passes = 0;
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    const GraphStage& stage = graph.stages[s];
    const std::string name = stage_name(static_cast<std::int64_t>(s));
    if (stage.device < 0 || static_cast<std::size_t>(stage.device) >= graph.stages.size()) {
      throw Error(name + " is on device " + std::to_string(stage.device),
                  "number the devices from 0, with no more devices than stages");
    }
    if (stage.micro_batch < 1 || graph.batch % stage.micro_batch != 0) {
      throw Error(name + " has micro-batches of " + std::to_string(stage.micro_batch) +
                      " samples, which do not divide the batch of " + std::to_string(graph.batch),
                  "choose a divisor of the batch");
    }
    const std::int64_t count = graph.round_micro_batches(s);
    if (count > kMostGraphPasses / 2 / graph.rounds ||
        (passes += 2 * count * graph.rounds) > kMostGraphPasses) {
      throw Error(name + " brings the passes beyond " + std::to_string(kMostGraphPasses),
                  "use larger micro-batches or fewer rounds");
    }
  }
}

void check_edges(const StageGraph& graph) {
  const auto stages = static_cast<std::int64_t>(graph.stages.size());
  for (const StageEdge& edge : graph.edges) {
    for (const std::int32_t end : {edge.source, edge.target}) {
      if (end < 0 || end >= stages) {
        throw Error("an edge joins " + stage_name(end) + ", which does not exist");
      }
    }
    if (edge.source == edge.target) {
      throw Error(stage_name(edge.source) + " has an edge to itself", "leave it out");
    }
    const std::int64_t a = graph.stages[static_cast<std::size_t>(edge.source)].micro_batch;
    const std::int64_t b = graph.stages[static_cast<std::size_t>(edge.target)].micro_batch;
    if (a % b != 0 && b % a != 0) {
      throw Error(stage_name(edge.target) + " has micro-batches of " + std::to_string(b) +
                      " samples, " + stage_name(edge.source) + " before it " + std::to_string(a),
                  "let one size divide the other");
    }
  }
}

}  // namespace

void check_stage_graph(const StageGraph& graph) {
  if (graph.stages.empty()) throw Error("the pipeline has no stages");
  if (graph.stages.size() > static_cast<std::size_t>(kMostGraphPasses)) {
    throw Error("the pipeline has more than " + std::to_string(kMostGraphPasses) + " stages");
  }
  if (graph.batch < 1 || graph.rounds < 1) {
    throw Error("the pipeline has no samples to run", "give at least one sample and one round");
  }
  check_stages(graph);
  check_edges(graph);
  depths_of(graph);
}

std::size_t device_count(const StageGraph& graph) {
  std::int32_t most = -1;
  for (const GraphStage& stage : graph.stages) most = std::max(most, stage.device);
  return static_cast<std::size_t>(std::int64_t{most} + 1);
}

std::vector<int> depths_of(const StageGraph& graph) {
  std::vector<ChunkEdge> edges;
  edges.reserve(graph.edges.size());
  for (const StageEdge& edge : graph.edges) edges.push_back({edge.source, 0, edge.target, 0, 0});
  return stage_depths(static_cast<int>(graph.stages.size()), edges);
}

std::vector<std::size_t> topological_stages(std::span<const int> depths) {
  std::vector<std::size_t> order(depths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depths[a] > depths[b]; });
  return order;
}

EdgeGroups edges_by_source(const StageGraph& graph) {
  return group_edges(graph, &StageEdge::source);
}

EdgeGroups edges_by_target(const StageGraph& graph) {
  return group_edges(graph, &StageEdge::target);
}

}  // namespace braid
