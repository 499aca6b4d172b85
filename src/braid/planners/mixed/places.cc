#include "braid/planners/mixed/places.h"

#include <utility>

#include "braid/plan/stage_load.h"

namespace braid {

std::vector<std::int64_t> MixedPlaces::devices(const MixedPlace& place) const {
  std::vector<std::int64_t> devices;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    const std::int64_t end = runs_[k].first + runs_[k].count - place.used[k];
    for (std::int64_t d = end - place.takes[k]; d < end; ++d) devices.push_back(d);
  }
  return devices;
}

double MixedPlaces::message_s(const MixedPlace& from, const MixedPlace& to, double bytes) {
  if (bytes <= 0) return 0;
  std::vector<std::int32_t> name;
  for (const auto& part : {from.used, from.takes, to.used, to.takes}) {
    name.insert(name.end(), part.begin(), part.end());
  }
  auto known = messages_.find(name);
  if (known == messages_.end()) {
    const std::vector<Flow> flows = handover_flows(devices(from), devices(to));
    meet(std::ssize(flows));
    known = messages_.emplace(std::move(name), FlowTimes(system_, flows)).first;
  }
  return known->second.slowest_s(bytes);
}

}  // namespace braid
