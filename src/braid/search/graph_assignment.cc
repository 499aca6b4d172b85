#include "braid/search/graph_assignment.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/search/bottleneck_search.h"
#include "braid/search/graph_splitter.h"
#include "braid/search/least_with_sync.h"

namespace braid {

double handover_s(const AssignmentGraph& graph, std::size_t stage, double bytes) {
  if (!(bytes > 0)) return 0;
  if (graph.handover_s) return graph.handover_s(stage, bytes);
  return (graph.latency_s.empty() ? 0 : graph.latency_s[stage]) + bytes * graph.s_per_byte[stage];
}

std::vector<double> handed_on_bytes(const AssignmentGraph& graph,
                                    const std::vector<std::vector<std::int32_t>>& stages) {
  std::vector<std::size_t> stage_of(graph.output_bytes.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const std::int32_t layer : stages[stage]) {
      stage_of[static_cast<std::size_t>(layer)] = stage;
    }
  }
  std::vector<std::size_t> needed_until(stage_of);
  for (const auto& [source, target] : graph.edges) {
    std::size_t& last = needed_until[static_cast<std::size_t>(source)];
    last = std::max(last, stage_of[static_cast<std::size_t>(target)]);
  }
  std::vector<double> crossing_bytes(stages.size(), 0);
  for (std::size_t layer = 0; layer < stage_of.size(); ++layer) {
    for (std::size_t cut = stage_of[layer]; cut < needed_until[layer]; ++cut) {
      crossing_bytes[cut] += graph.output_bytes[layer];
    }
  }
  return crossing_bytes;
}

double amp_pipeline_s(const AssignmentGraph& graph,
                      const std::vector<std::vector<std::int32_t>>& stages) {
  double longest_s = 0, sum_s = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    double stage_s = 0;
    for (const std::int32_t layer : stages[stage]) {
      stage_s += graph.layer_s[stage][static_cast<std::size_t>(layer)];
    }
    longest_s = std::max(longest_s, stage_s);
    sum_s += stage_s;
  }
  const std::vector<double> crossing_bytes = handed_on_bytes(graph, stages);
  for (std::size_t cut = 0; cut + 1 < stages.size(); ++cut) {
    sum_s += handover_s(graph, cut, crossing_bytes[cut]);
  }
  return static_cast<double>(graph.micro_batches - 1) * longest_s + sum_s;
}

std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph, const GraphCuts& cuts,
                                            std::span<const double> crossing_bytes, double below_s,
                                            std::int64_t* steps) {
  assert(!graph.layer_s.empty() && graph.micro_batches >= 1);
  if (graph.output_bytes.size() < graph.layer_s.size()) return std::nullopt;
  GraphSplitter splitter(graph, cuts, crossing_bytes);
  auto best = least_with_sync<GraphAssignment>(
      [&](double sync_below_s, double cost_below_s) -> std::optional<GraphAssignment> {
        if (!splitter.limit(sync_below_s, cost_below_s - splitter.least_sync_s())) {
          return std::nullopt;
        }
        ThresholdProblem problem;
        problem.least = splitter.least_bottleneck_s();
        problem.solve = [&](double threshold_s) { return splitter.solve(threshold_s); };
        // Asked for the threshold just solved.
        problem.next_above = [&](double) { return splitter.next_threshold_s(); };
        const auto bottleneck_s =
            best_bottleneck(problem, static_cast<double>(graph.micro_batches - 1));
        if (!bottleneck_s.has_value()) return std::nullopt;
        splitter.solve(*bottleneck_s);
        GraphAssignment found;
        found.stages = splitter.stages();
        found.pipeline_s = amp_pipeline_s(graph, found.stages);
        found.sync_s = splitter.longest_sync_s();
        return found;
      },
      below_s);
  if (steps != nullptr) *steps += splitter.steps();
  return best;
}

std::optional<GraphAssignment> assign_graph(const AssignmentGraph& graph) {
  const Dag dag = make_dag(graph.output_bytes.size(), graph.edges);
  const auto cuts = graph_cuts(dag, kMostGraphCuts);
  if (!cuts.has_value()) {
    throw Error(fmt::format("the graph can be cut in more than {} ways", kMostGraphCuts),
                "join layers of parallel branches");
  }
  return assign_graph(graph, *cuts, cuts->crossing(dag, graph.output_bytes));
}

}  // namespace braid
