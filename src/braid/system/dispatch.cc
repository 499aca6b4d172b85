#include "braid/system/dispatch.h"

#include <algorithm>
#include <cassert>

#include "braid/system/group_steps.h"
#include "braid/system/topology.h"

namespace braid {

double units_reached(double units, double targets, std::int64_t chosen) {
  double none = 1;
  for (std::int64_t i = 0; i < chosen; ++i) {
    const auto taken = static_cast<double>(i);
    none *= std::max(0.0, targets - targets / units - taken) / (targets - taken);
  }
  return units * (1 - none);
}

CollectiveTime dispatch_time(double bytes, std::int64_t targets, std::int64_t chosen,
                             const GroupSpan& span, const System& system) {
  assert(chosen <= targets);
  const GroupSteps steps = steps_of(span, system);
  CollectiveTime result;
  if (steps.count == 0 || bytes <= 0) return result;
  result.algorithm = CollectiveAlgorithm::direct;
  double covered = 1;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const LevelStep& step = steps.step[i];
    // Copies that arrive in a unit of this level, or begin there, each on one of its members.
    const double copies =
        units_reached(steps.size / covered, static_cast<double>(targets), chosen) * step.inner;
    const double leaving = bytes * copies * (1 - 1 / step.members);
    double transfer_s = leaving / achieved_bytes_per_s(*step.level, step.group_bandwidth,
                                                       leaving / (step.inner * (step.members - 1)));
    const double across = bisection_load(*step.level, step.members);
    if (across > 0) {
      const double link = step.group_bandwidth * link_fraction(*step.level) /
                          group_fraction(*step.level, step.members);
      transfer_s = std::max(transfer_s,
                            across * bytes * copies /
                                achieved_bytes_per_s(*step.level, link,
                                                     bytes * copies / (step.inner * step.members)));
    }
    result.time_s = std::max(result.time_s, transfer_s);
    result.latency_s = std::max(result.latency_s, step.level->latency_s);
    covered *= step.members;
  }
  result.time_s += result.latency_s;
  return result;
}

}  // namespace braid
