#include "braid/backend/place/region_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "braid/backend/place/program_placer.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// More parts have more runs than there is sense in listing.
constexpr std::int64_t kMostParts = 24;

/// The regions that genes stand for. Choice 0 is kernels, the others the regions of backends.
class RegionGenes {
 public:
  RegionGenes(const FixedProgram& fixed, const std::vector<FoundBackend>& backends,
              CostStore* store, const PlaceOptions& options)
      : places_(cut_places(fixed.program, kMostParts)),
        placer_(fixed, backends, region_candidates(fixed, backends, places_), store, options),
        budget_(options.evolved_regions) {
    for (std::size_t c = placer_.first_region(); c < placer_.candidates().size(); ++c) {
      const KernelCandidate& each = placer_.candidates()[c];
      if (std::find(ways_.begin(), ways_.end(), each.pattern) == ways_.end()) {
        ways_.push_back(each.pattern);
      }
      const auto way = std::find(ways_.begin(), ways_.end(), each.pattern) - ways_.begin();
      regions_[{each.nodes.front(), each.nodes.back(), static_cast<std::int8_t>(way + 1)}] = c;
    }
  }

  std::size_t parts() const { return places_.size() - 1; }
  int choices() const { return static_cast<int>(ways_.size()) + 1; }
  ProgramPlacer& placer() { return placer_; }

  /// Infinite where a run is no region of its backend, or to measure it would pass the budget.
  double cost_s(const Genes& genes) {
    const auto placement = placed(genes);
    return placement ? placement->cost_s : std::numeric_limits<double>::infinity();
  }

  std::optional<CheapestPlacement> placed(const Genes& genes) {
    const auto regions = regions_of(genes);
    if (!regions) return std::nullopt;
    std::int64_t to_measure = 0;
    for (const std::size_t each : *regions) to_measure += placer_.is_free(each) ? 0 : 1;
    if (to_measure > budget_) return std::nullopt;
    budget_ -= to_measure;
    return placer_.placed_with(*regions);
  }

  /// Genes of what a placement does: parts that lie within a region, and others.
  Genes genes_of(const ProgramPlacement& placement) const {
    Genes genes(parts(), 0);
    for (const PlacedGroup& group : placement.groups) {
      for (std::size_t w = 0; w < ways_.size(); ++w) {
        if (group.pattern != ways_[w]->name) continue;
        for (std::size_t p = 0; p < parts(); ++p) {
          if (at(group.nodes.front()) <= places_[p] &&
              at(group.nodes.back()) + 1 >= places_[p + 1]) {
            genes[p] = static_cast<std::int8_t>(w + 1);
          }
        }
      }
    }
    return genes;
  }

 private:
  using Run = std::tuple<NodeId, NodeId, std::int8_t>;  ///< First and last node, and the choice.

  std::optional<std::vector<std::size_t>> regions_of(const Genes& genes) const {
    std::vector<std::size_t> regions;
    for (std::size_t from = 0; from < parts();) {
      std::size_t to = from + 1;
      while (to < parts() && genes[to] == genes[from]) ++to;
      if (genes[from] != 0) {
        const auto found = regions_.find({static_cast<NodeId>(places_[from]),
                                          static_cast<NodeId>(places_[to] - 1), genes[from]});
        if (found == regions_.end()) return std::nullopt;
        regions.push_back(found->second);
      }
      from = to;
    }
    return regions;
  }

  std::vector<std::size_t> places_;
  ProgramPlacer placer_;
  std::int64_t budget_ = 0;
  std::vector<const BackendPattern*> ways_;
  std::map<Run, std::size_t> regions_;
};

}  // namespace

ProgramPlacement evolved_placement(const FixedProgram& fixed,
                                   const std::vector<FoundBackend>& backends, CostStore* store,
                                   const PlaceOptions& options, const ProgramPlacement& seed,
                                   const EvolutionOptions& evolution) {
  ProgramPlacement answer = seed;
  answer.measured = 0;
  if (fixed.program.nodes.empty() || options.evolved_regions == 0) return answer;
  RegionGenes regions(fixed, backends, store, options);
  if (regions.choices() == 1) return answer;
  const Genes kernels(regions.parts(), 0);
  const Evolved found = evolved(
      {kernels, regions.genes_of(seed)}, regions.choices(),
      [&](const Genes& genes) { return regions.cost_s(genes); }, evolution);
  if (const auto placement = regions.placed(found.best)) {
    ProgramPlacement best = regions.placer().answer(*placement);
    if (best.predicted_s < seed.predicted_s) answer = std::move(best);
  }
  answer.measured = regions.placer().counts().measured;
  return answer;
}

}  // namespace braid
