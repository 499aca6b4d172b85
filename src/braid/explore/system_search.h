#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/explore/kept_systems.h"
#include "braid/explore/point_store.h"
#include "braid/explore/space.h"

namespace braid {

//   const Space space = read_space("tpu.yaml");               // with `search`
//   const SystemSearchResult found = search_systems(space, nullptr);
//   found.searches.front().best.front().place;                // the best system

/// What a search by one planner found.
struct PlannerSearch {
  std::size_t planner = 0;  ///< Value of the axis of planners.
  /// Best first; of a front, by falling throughput.
  std::vector<FoundSystem> best;
  std::size_t systems = 0;  ///< Of the space.
  std::size_t planned = 0;  ///< Planned exactly, one workload after the other.
  std::size_t bounded = 0;  ///< Families of systems bounded together.
  /// No system that was left, or whose plan is not proven and which is not listed, has more:
  /// infinite where nothing bounds it. 0: there is none, and what is listed is proven.
  double open_value = 0;
  /// [architecture]: no system with it has more; what the best one has where is_exact. Empty where
  /// the space has no architectures.
  std::vector<double> at_most;
  std::vector<bool> is_exact;
  std::string why_none;  ///< Where nothing was found: the first reason met.
};

struct SystemSearchResult {
  std::vector<PlannerSearch> searches;  ///< One for each planner of the space.
  std::vector<PointResult> results;     ///< By number of the point; of planned ones.
  std::vector<std::size_t> planned;     ///< Numbers of the points planned, ascending.
  std::size_t resumed = 0;              ///< How many of them were in the store.
};

/// Told how many systems have been planned and how many families bounded, by the planner at work.
using SystemSearchProgress = std::function<void(std::size_t planned, std::size_t bounded)>;

/// The best systems of a space that has a search, or its front. Branch and bound over families of
/// systems (architecture_family.h): planning all workloads on a system that is nowhere worse than
/// any of the family bounds what its members reach. Families come by falling bound; one that cannot
/// have a better system than the worst that is kept is left out, others are split, and a single
/// system is planned. So what is found is what a sweep over all points would find, by figures, up
/// to `within`. Of equal ones those of less power, then of less price are found; of systems that
/// are equal in all that, any. Deterministic, whatever the threads and the store. `progress` may be
/// empty. Throws Error as sweep_space.
SystemSearchResult search_systems(const Space& space, PointStore* store,
                                  const SystemSearchProgress& progress = {});

/// The search by one planner of the space alone, with nothing known.
PlannerSearch search_systems_by(const Space& space, std::size_t planner);

}  // namespace braid
