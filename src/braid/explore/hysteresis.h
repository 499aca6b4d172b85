#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "braid/chip/accelerator/architectures.h"
#include "braid/explore/kept_systems.h"

namespace braid {

//   const Space space = read_space("examples/explore/accelerator.yaml");
//   search_by_hysteresis(space, 0, {}).value;       // of Phaze's walk
//   search_systems(space, nullptr).searches[0].best.front().value;   // of all architectures

/// When Phaze's search over architectures ends (Adnan et al. 2024, appendix C.1; its paper
/// recommends 6 buckets, solver.py of its artifact has 5).
struct HysteresisRule {
  std::size_t buckets = 5;
  double bucket_um2 = 10'000;  ///< Areas that count as equal.
};

/// Architectures by ⌊area / bucket_um2⌋, the largest first; of one bucket in the order of the list.
std::vector<std::vector<std::uint32_t>> area_buckets(std::span<const Architecture> all,
                                                     double bucket_um2);

/// Whether the best of none of the last `buckets` buckets is better than that of the one before it:
/// maxima[i] is the best of the i-th. False as long as there are fewer.
bool is_converged(std::span<const double> maxima, std::size_t buckets);

/// A walk from the largest bucket down until it has converged.
struct AreaWalk {
  std::vector<std::uint32_t> seen;  ///< Architectures in the order in which they were looked at.
  std::uint32_t best = 0;           ///< The first of those with most.
  double value = 0;
};
/// `value(i)`: what the i-th architecture reaches, 0 for one without a plan. Larger is better.
AreaWalk walk_by_area(std::span<const Architecture> all, const HysteresisRule& rule,
                      const std::function<double(std::uint32_t)>& value);

/// What Phaze's rule finds in a space.
struct HysteresisFinding {
  std::size_t walks = 0;
  std::size_t architectures = 0;  ///< Different ones that some walk looked at.
  double least_area_um2 = 0;      ///< Of the smallest of these.
  FoundSystem system;             ///< Without throughput and cost.
  double value = 0;               ///< By the figure searched for; 0: nothing was found.
};

/// The best of a walk for every combination of the other axes' values (memories, networks …), of
/// the micro-batch sizes that the space lists, and where a planner recomputes all layers alike
/// (PlannerEntry::recomputes_all) of activations kept or computed again, as Phaze has them. Planned
/// exactly, as in search_systems(). The space has a search over architectures. Cost: its walks'
/// architectures, each planned.
HysteresisFinding search_by_hysteresis(const Space& space, std::size_t planner,
                                       const HysteresisRule& rule);

}  // namespace braid
