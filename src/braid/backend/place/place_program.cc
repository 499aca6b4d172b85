#include "braid/backend/place/place_program.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "braid/backend/place/program_placer.h"
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
  std::vector<KernelCandidate> regions;
  if (options.region_parts > 0 && !fixed.program.nodes.empty()) {
    regions = region_candidates(fixed, backends, cut_places(fixed.program, options.region_parts));
  }
  ProgramPlacer placer(fixed, backends, std::move(regions), store, options);
  return placer.answer(placer.placed());
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
