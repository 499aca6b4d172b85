#include "braid/explore/architecture_limits.h"

#include <algorithm>

#include "braid/base/infinity.h"

namespace braid {

ArchitectureLimits::ArchitectureLimits(const Space& space, std::size_t count)
    : space_(space), count_(count) {
  if (count == 0) return;
  const std::size_t systems = point_count(space) / (space.axes[kWorkloadAxis].values.size() *
                                                    space.axes[kMethodAxis].values.size());
  most_.assign(systems, {kInfinity, false});
}

void ArchitectureLimits::note(const SystemFamily& family, double value, bool is_exact) {
  for (SpacePoint& place : with_each_memory(family.place, family.memories)) {
    for (const std::uint32_t member : family.members) {
      place[kChipAxis] = member;
      Most& most = most_[point_number(space_, place, 0, 0)];
      most = {std::min(most.value, value), is_exact};
    }
  }
}

ArchitectureLimits::OfArchitectures ArchitectureLimits::of_architectures() const {
  OfArchitectures of{std::vector<double>(count_, 0), std::vector<bool>(count_, false)};
  // The chip is the first axis of systems.
  for (std::size_t i = 0; i < most_.size(); ++i) {
    const std::size_t architecture = i / (most_.size() / count_);
    if (most_[i].value < of.at_most[architecture]) continue;
    of.is_exact[architecture] = most_[i].is_exact;
    of.at_most[architecture] = most_[i].value;
  }
  return of;
}

}  // namespace braid
