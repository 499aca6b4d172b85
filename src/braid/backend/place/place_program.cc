#include "braid/backend/place/place_program.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "braid/backend/place/candidate_costs.h"
#include "braid/backend/place/candidates.h"
#include "braid/backend/place/placement_problem.h"
#include "braid/backend/placement/cheapest_placement.h"
#include "braid/base/index.h"

namespace braid {

std::vector<std::string> operator_names(const FixedProgram& fixed, const PlacedGroup& group) {
  std::vector<std::string> names;
  names.reserve(group.nodes.size());
  for (const NodeId node : group.nodes) names.push_back(fixed.program.nodes[at(node)].name);
  return names;
}

ProgramPlacement place_program(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                               CostStore* store, const PlaceOptions& options) {
  ProgramPlacement result;
  const ProgramOpGraph graph = op_graph_of(fixed.program);
  std::vector<KernelCandidate> candidates = kernel_candidates(fixed, graph, backends);
  for (KernelCandidate& each : region_candidates(fixed, backends, options.region_parts)) {
    candidates.push_back(std::move(each));
  }
  result.candidates = static_cast<std::int64_t>(candidates.size());
  CandidateCosts costs(fixed, graph, candidates, store, options, result);
  const LaidValues laid = laid_values(fixed, graph, candidates);
  PlacementProblem problem = placement_problem(fixed, graph, candidates, laid);
  problem.cost_s = [&](std::size_t candidate) { return costs.cost_s(candidate); };
  problem.cost_per_kernel_s = options.cost_per_kernel_s;
  const auto turning_s = [&](std::int32_t value, int from, int to) {
    return costs.turning_s(fixed.forms[at(laid.values[at(value)])], all_layouts[at(from)],
                           all_layouts[at(to)]);
  };
  problem.values.turn_s = turning_s;
  const auto placement = cheapest_placement(problem);
  result.kernels = costs.kernels();
  assert(placement);  // Reference kernels cover every node.
  for (const std::size_t chosen : placement->candidates) {
    const KernelCandidate& each = candidates[chosen];
    const bool reference = each.backend == nullptr;
    result.groups.push_back(
        {reference ? "reference" : each.backend->name,
         reference ? fixed.program.nodes[at(each.nodes.front())].operation : each.pattern->name,
         each.nodes, costs.cost_s(chosen), each.layouts});
    result.predicted_s += result.groups.back().cost_s;
  }
  for (const FormatTurn& each : placement->turns) {
    result.turns.push_back({laid.values[at(each.value)], all_layouts[at(each.from)],
                            all_layouts[at(each.to)], turning_s(each.value, each.from, each.to)});
    result.predicted_s += result.turns.back().cost_s;
  }
  // A group runs when its root does: all that it reads are roots before.
  std::sort(
      result.groups.begin(), result.groups.end(),
      [](const PlacedGroup& a, const PlacedGroup& b) { return a.nodes.back() < b.nodes.back(); });
  return result;
}

std::optional<ProgramPlacement> whole_placement(const FixedProgram& fixed, const Backend& backend,
                                                const BackendPattern& region, CostStore* store,
                                                const PlaceOptions& options, std::string& problem) {
  ProgramPlacement result;
  KernelCandidate whole{&backend, &region, {}, {}, {}};
  whole.nodes.resize(fixed.program.nodes.size());
  std::iota(whole.nodes.begin(), whole.nodes.end(), 0);
  if (whole.nodes.empty() || !region.accepts(region_job(fixed.program, whole.nodes, fixed.forms))) {
    problem = "it lacks an operation";
    return std::nullopt;
  }
  const ProgramOpGraph graph = op_graph_of(fixed.program);
  const std::vector<KernelCandidate> candidates{whole};
  CandidateCosts costs(fixed, graph, candidates, store, options, result);
  result.predicted_s = costs.cost_s(0);
  result.candidates = result.kernels = 1;
  if (!std::isfinite(result.predicted_s)) {
    problem = result.wrong.empty() ? "its library refuses the network" : result.wrong.front();
    return std::nullopt;
  }
  result.groups.push_back(
      {backend.name, region.name, std::move(whole.nodes), result.predicted_s, {}});
  return result;
}

}  // namespace braid
