#include "braid/planners/phaze/linear.h"

#include <algorithm>

#include "braid/planners/phaze/stage.h"

namespace braid {
namespace {

/// Edges at each layer.
struct LayerNeighbours {
  std::vector<std::vector<std::size_t>> in, out;
};

LayerNeighbours neighbours(const PhazeProblem& problem) {
  LayerNeighbours found{std::vector<std::vector<std::size_t>>(problem.names.size()),
                        std::vector<std::vector<std::size_t>>(problem.names.size())};
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    found.out[static_cast<std::size_t>(problem.edges[e].first)].push_back(e);
    found.in[static_cast<std::size_t>(problem.edges[e].second)].push_back(e);
  }
  return found;
}

}  // namespace

PhazeCandidates phaze_linear_candidates(const PhazeProblem& problem, const PhazeWidth& width) {
  const std::size_t layers = problem.names.size();
  const LayerNeighbours edges = neighbours(problem);
  std::vector<double> backward_s(layers + 1, 0);  // Of the stage up to each right end.
  std::vector<double> leaving_s(layers + 1, 0);   // Longest transfer of a layer to that or later.
  std::vector<std::vector<PhazeCandidate>> by_inner(layers);
  for (std::size_t left = layers; left-- > 0;) {
    std::fill(leaving_s.begin(), leaving_s.end(), 0);
    for (const std::size_t e : edges.out[left]) {
      double& transfer_s = leaving_s[static_cast<std::size_t>(problem.edges[e].second)];
      transfer_s = std::max(transfer_s, width.edge_bytes[e] / problem.bytes_per_s);
    }
    for (std::size_t r = layers; r-- > left;)
      leaving_s[r] = std::max(leaving_s[r], leaving_s[r + 1]);

    PhazeStageCost cost;
    cost.memory_bytes.assign(1, {0, 0});
    auto& [held_bytes, stash_bytes] = cost.memory_bytes.front();
    double repeated_s = 0, alone_s = 0;  // Sums of forward and backward passes.
    for (std::size_t right = left + 1; right <= layers; ++right) {
      const PhazeLayer& last = width.layers[right - 1];
      double entering_s = 0;
      for (const std::size_t e : edges.in[right - 1]) {
        if (static_cast<std::size_t>(problem.edges[e].first) >= left) continue;
        entering_s = std::max(entering_s, width.edge_bytes[e] / problem.bytes_per_s);
        if (problem.recompute) stash_bytes += width.edge_bytes[e];
      }
      cost.forward_s = std::max(cost.forward_s, entering_s) + last.forward_s;
      repeated_s += last.forward_s;
      alone_s += last.backward_s;
      backward_s[right] =
          std::max(backward_s[right], leaving_s[right]) + width.layers[left].backward_s;
      cost.last_backward_s = backward_s[right];
      // A chain of "wait, then run" steps that begins later ends at the later of its own end and
      // the beginning plus all that it runs.
      cost.backward_s =
          problem.recompute ? std::max(backward_s[right], repeated_s + alone_s) : backward_s[right];
      cost.weight_bytes += last.weight_bytes;
      held_bytes += problem.held_bytes(last) + last.activation_bytes;
      if (!problem.recompute) stash_bytes += last.activation_bytes;
      if (last.tensor_parallel) cost.devices = width.tp;
      if (cost.devices > problem.devices || !(held_bytes <= problem.memory_bytes)) break;
      by_inner[left].push_back(phaze_candidate(problem, cost, left, right, 1));
    }
  }
  PhazeCandidates candidates;
  candidates.offset.push_back(0);
  for (const auto& found : by_inner) {
    candidates.all.insert(candidates.all.end(), found.begin(), found.end());
    candidates.offset.push_back(candidates.all.size());
  }
  candidates.offset.push_back(candidates.all.size());  // None begins behind the last cut.
  return candidates;
}

}  // namespace braid
