#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "braid/explore/space.h"

namespace braid {

/// A system of a space: which value of each axis but workload and planner, which are 0.
struct FoundSystem {
  SpacePoint place;
  double value = 0;                ///< Of the figure that is searched for.
  double usd = 0, watts = 0;       ///< 0: the space has none.
  std::vector<double> throughput;  ///< [workload]
};

/// What a system has, or what no system of a family has more of (less, of price and power).
struct SystemMerit {
  double value = 0;  ///< The figure searched for; of a front, throughput.
  double usd = 0, watts = 0;
};

/// Larger is better: of equal values less power, then less price.
std::tuple<double, double, double> rank_of(const SystemMerit& merit);

/// The systems that a search lists: the best, or a front.
class KeptSystems {
 public:
  /// The space has a search and outlives this.
  explicit KeptSystems(const Space& space);

  /// Whether no system with at most this merit is to be listed, up to what may be left out.
  bool settles(const SystemMerit& most) const;
  /// Puts a system among them, if it belongs there. Of those that differ in memory alone, and are
  /// equally good, the one with least.
  void add(FoundSystem system);
  /// Best first; of a front, by falling throughput.
  std::vector<FoundSystem> take();

 private:
  bool is_no_worse(const FoundSystem& known, const SystemMerit& other) const;
  FoundSystem* with_other_memory(const FoundSystem& system);

  const SystemSpace& systems_;
  const SystemSearch& search_;
  std::optional<std::size_t> memory_axis_;
  std::vector<FoundSystem> best_;
};

}  // namespace braid
