#include "braid/backend/place/program_placer.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

std::vector<KernelCandidate> all_candidates(const FixedProgram& fixed, const ProgramOpGraph& graph,
                                            const std::vector<FoundBackend>& backends,
                                            std::vector<KernelCandidate> regions) {
  std::vector<KernelCandidate> all = kernel_candidates(fixed, graph, backends);
  for (KernelCandidate& each : regions) all.push_back(std::move(each));
  return all;
}

}  // namespace

ProgramPlacer::ProgramPlacer(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
                             std::vector<KernelCandidate> regions, CostStore* store,
                             const PlaceOptions& options)
    : fixed_(fixed),
      options_(options),
      graph_(op_graph_of(fixed.program)),
      candidates_(all_candidates(fixed, graph_, backends, std::move(regions))),
      costs_(fixed, graph_, candidates_, store, options, counts_),
      laid_(laid_values(fixed, graph_, candidates_)),
      problem_(placement_problem(fixed, graph_, candidates_, laid_)) {
  while (first_region_ < candidates_.size() && !candidates_[first_region_].is_region()) {
    ++first_region_;
  }
  counts_.candidates = static_cast<std::int64_t>(candidates_.size());
  problem_.cost_per_kernel_s = options_.cost_per_kernel_s;
  problem_.values.turn_s = [this](std::int32_t value, int from, int to) {
    return turning_s(value, from, to);
  };
}

double ProgramPlacer::turning_s(std::int32_t value, int from, int to) {
  return costs_.turning_s(fixed_.forms[at(laid_.values[at(value)])], all_layouts[at(from)],
                          all_layouts[at(to)]);
}

CheapestPlacement ProgramPlacer::placed() {
  problem_.cost_s = [this](std::size_t candidate) { return costs_.cost_s(candidate); };
  const auto placement = cheapest_placement(problem_);
  assert(placement);  // Reference kernels cover every node.
  return *placement;
}

std::optional<CheapestPlacement> ProgramPlacer::placed_with(
    const std::vector<std::size_t>& regions) {
  std::vector<bool> is_held(fixed_.program.nodes.size(), false);
  for (const std::size_t region : regions) {
    for (const NodeId node : candidates_[region].nodes) is_held[at(node)] = true;
  }
  problem_.cost_s = [&](std::size_t candidate) {
    const KernelCandidate& each = candidates_[candidate];
    const bool is_taken =
        each.is_region() ? std::find(regions.begin(), regions.end(), candidate) != regions.end()
                         : std::none_of(each.nodes.begin(), each.nodes.end(),
                                        [&](NodeId node) { return is_held[at(node)]; });
    return is_taken ? costs_.cost_s(candidate) : std::numeric_limits<double>::infinity();
  };
  return cheapest_placement(problem_);
}

ProgramPlacement ProgramPlacer::answer(const CheapestPlacement& placement) {
  ProgramPlacement result = counts_;
  result.kernels = costs_.kernels();
  for (const std::size_t chosen : placement.candidates) {
    const KernelCandidate& each = candidates_[chosen];
    const bool reference = each.backend == nullptr;
    result.groups.push_back(
        {reference ? "reference" : each.backend->name,
         reference ? fixed_.program.nodes[at(each.nodes.front())].operation : each.pattern->name,
         each.nodes, costs_.cost_s(chosen), each.layouts});
    result.predicted_s += result.groups.back().cost_s;
  }
  for (const FormatTurn& each : placement.turns) {
    result.turns.push_back({laid_.values[at(each.value)], all_layouts[at(each.from)],
                            all_layouts[at(each.to)], turning_s(each.value, each.from, each.to)});
    result.predicted_s += result.turns.back().cost_s;
  }
  // A group runs when its root does: all that it reads are roots before.
  std::sort(
      result.groups.begin(), result.groups.end(),
      [](const PlacedGroup& a, const PlacedGroup& b) { return a.nodes.back() < b.nodes.back(); });
  return result;
}

}  // namespace braid
