#include "braid/system/named_hierarchy.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/system/level_exchange.h"
#include "braid/system/links.h"
#include "braid/system/topology.h"

namespace braid {
namespace {

using Places = std::span<const Placement>;

/// Calls visit(run) for each run of neighbours with the same number.
template <typename Number, typename Visit>
void for_each_run(Places places, const Number& number, const Visit& visit) {
  for (std::size_t begin = 0; begin < places.size();) {
    std::size_t end = begin + 1;
    while (end < places.size() && number(places[end]) == number(places[begin])) ++end;
    visit(places.subspan(begin, end - begin));
    begin = end;
  }
}

class Hierarchy {
 public:
  Hierarchy(std::span<const std::vector<std::int64_t>> groups, const System& system)
      : system_(system) {
    for (const std::vector<std::int64_t>& group : groups) {
      std::vector<Placement>& places = groups_.emplace_back();
      for (const std::int64_t device : group) places.push_back(placement_of(system, device));
      for (std::size_t level = 1; level <= system.levels.size(); ++level)
        count_leaving(level, places);
    }
  }

  double slowest_s(double bytes, double rounds) const {
    double slowest_s = 0;
    for (const std::vector<Placement>& places : groups_) {
      double time_s = in_nodes_s(places, bytes, rounds);
      for (std::size_t level = 1; level <= system_.levels.size(); ++level) {
        time_s += between_units_s(level, places, bytes, rounds);
      }
      slowest_s = std::max(slowest_s, time_s);
    }
    return slowest_s;
  }

 private:
  std::int64_t unit(std::size_t level, const Placement& place) const {
    return level > system_.levels.size() ? 0 : unit_of(system_, level, place.node);
  }

  void count_leaving(std::size_t level, Places places) {
    if (unit(level, places.front()) == unit(level, places.back())) return;
    for_each_run(
        places, [&](const Placement& place) { return unit(level, place); },
        [&](Places run) {
          ++leaving_[{level, unit(level, run.front())}];
        });
  }

  double in_nodes_s(Places places, double bytes, double rounds) const {
    double slowest_s = 0;
    for_each_run(
        places, [](const Placement& place) { return place.node; },
        [&](Places run) {
          if (run.size() < 2) return;
          LevelStep step;
          step.level = &system_.groups[run.front().group].intra_node;
          step.members = static_cast<double>(run.size());
          step.group_bandwidth =
              step.level->bytes_per_s * group_fraction(*step.level, step.members);
          step.flow_bandwidth = step.group_bandwidth;
          slowest_s = std::max(slowest_s, level_exchange(step, bytes, rounds).time_s);
        });
    return slowest_s;
  }

  double between_units_s(std::size_t level, Places places, double bytes, double rounds) const {
    double slowest_s = 0;
    for_each_run(
        places, [&](const Placement& place) { return unit(level + 1, place); },
        [&](Places joined) {
          const LevelStep step = step_between(level, joined);
          if (step.members < 2) return;
          slowest_s = std::max(slowest_s, level_exchange(step, bytes, rounds).time_s);
        });
    return slowest_s;
  }

  LevelStep step_between(std::size_t level, Places joined) const {
    LevelStep step;
    step.level = &system_.levels[level - 1];
    step.members = 0;
    step.inner = kInfinity;
    step.group_bandwidth = step.flow_bandwidth = step.inner;
    for_each_run(
        joined, [&](const Placement& place) { return unit(level, place); },
        [&](Places run) {
          const auto inner = static_cast<double>(run.size());
          const double uplink = uplink_bytes_per_s(system_, level, run.front());
          const auto sharers = leaving_.find({level, unit(level, run.front())});
          const double share = uplink / (sharers == leaving_.end() ? 1 : sharers->second);
          const double rail = uplink / step.level->rails;
          step.members += 1;
          step.inner = std::min(step.inner, inner);
          step.group_bandwidth = std::min({step.group_bandwidth, share, rail * inner});
          step.flow_bandwidth = std::min({step.flow_bandwidth, share, rail});
        });
    const double fraction = group_fraction(*step.level, step.members);
    step.group_bandwidth *= fraction;
    step.flow_bandwidth *= fraction;
    return step;
  }

  const System& system_;
  std::vector<std::vector<Placement>> groups_;
  std::map<std::pair<std::size_t, std::int64_t>, double> leaving_;  ///< Groups, by (level, unit).
};

}  // namespace

double named_hierarchy_time_s(Collective collective, double bytes,
                              std::span<const std::vector<std::int64_t>> groups,
                              const System& system) {
  assert(system.bandwidth_matrix.empty());
  if (bytes <= 0 || groups.empty() || groups.front().size() < 2) return 0;
  return Hierarchy(groups, system).slowest_s(bytes, collective == Collective::all_reduce ? 2 : 1);
}

}  // namespace braid
