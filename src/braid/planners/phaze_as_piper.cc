#include "braid/planners/phaze_as_piper.h"

#include <algorithm>

namespace braid {
namespace {

/// By edge, over all widths.
std::vector<double> least_edge_bytes(const PhazeProblem& problem) {
  std::vector<double> least = problem.widths.front().edge_bytes;
  for (const PhazeWidth& width : problem.widths) {
    for (std::size_t e = 0; e < least.size(); ++e) {
      least[e] = std::min(least[e], width.edge_bytes[e]);
    }
  }
  return least;
}

}  // namespace

PiperProblem piper_from_phaze(const PhazeProblem& problem) {
  PiperProblem made;
  made.devices = problem.devices;
  made.micro_batches = problem.micro_batches;
  made.memory_bytes = problem.memory_bytes;
  made.bandwidth_bytes = problem.bytes_per_s;
  const std::vector<double> least_bytes = least_edge_bytes(problem);
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    made.edges.push_back({problem.edges[e].first, problem.edges[e].second, least_bytes[e]});
  }
  for (std::size_t v = 0; v < problem.names.size(); ++v) {
    PiperNode node;
    node.name = problem.names[v];
    for (const PhazeWidth& width : problem.widths) {
      const PhazeLayer& layer = width.layers[v];
      PiperOption stash, recompute;
      double input_bytes = 0;
      for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const double more_bytes = width.edge_bytes[e] - least_bytes[e];
        if (static_cast<std::size_t>(problem.edges[e].second) == v) {
          stash.in_sync_bytes.push_back(more_bytes);
          input_bytes += width.edge_bytes[e];
        }
        if (static_cast<std::size_t>(problem.edges[e].first) == v) {
          stash.out_sync_bytes.push_back(more_bytes);
        }
      }
      stash.name = "stash";
      stash.time = layer.forward_s + layer.backward_s;
      stash.parameter_bytes = layer.weight_bytes;
      stash.in_flight_bytes = layer.activation_bytes;
      stash.fixed_bytes = problem.held_bytes(layer);
      recompute = stash;
      recompute.name = "recompute";
      recompute.time += layer.forward_s;
      recompute.in_flight_bytes = input_bytes;
      recompute.fixed_bytes += layer.activation_bytes;
      recompute.recompute = true;
      node.degrees.push_back({width.tp, {std::move(stash), std::move(recompute)}});
    }
    made.nodes.push_back(std::move(node));
  }
  return made;
}

}  // namespace braid
