#include "braid/backend/place/place_program.h"

#include <algorithm>
#include <cassert>

#include "braid/backend/place/candidate_costs.h"
#include "braid/backend/place/candidates.h"
#include "braid/backend/placement/cheapest_placement.h"
#include "braid/base/index.h"

namespace braid {

ProgramPlacement place_program(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                               CostStore* store, const PlaceOptions& options) {
  ProgramPlacement result;
  const ProgramOpGraph graph = op_graph_of(fixed.program);
  const std::vector<KernelCandidate> candidates = kernel_candidates(fixed, graph, backends);
  result.candidates = static_cast<std::int64_t>(candidates.size());
  CandidateCosts costs(fixed, graph, candidates, store, options, result);
  PlacementProblem problem;
  problem.node_count = static_cast<std::int32_t>(fixed.program.nodes.size());
  for (const KernelCandidate& each : candidates) problem.candidates.push_back({each.nodes});
  problem.cost_s = [&](std::size_t candidate) { return costs.cost_s(candidate); };
  problem.cost_per_kernel_s = options.cost_per_kernel_s;
  const auto placement = cheapest_placement(problem);
  result.kernels = costs.kernels();
  assert(placement);  // Reference kernels cover every node.
  for (const std::size_t chosen : placement->candidates) {
    const KernelCandidate& each = candidates[chosen];
    const bool reference = each.backend == nullptr;
    result.groups.push_back(
        {reference ? "reference" : each.backend->name,
         reference ? fixed.program.nodes[at(each.nodes.front())].operation : each.pattern->name,
         each.nodes, costs.cost_s(chosen)});
    result.predicted_s += result.groups.back().cost_s;
  }
  // A group runs when its root does: all that it reads are roots before.
  std::sort(
      result.groups.begin(), result.groups.end(),
      [](const PlacedGroup& a, const PlacedGroup& b) { return a.nodes.back() < b.nodes.back(); });
  return result;
}

}  // namespace braid
