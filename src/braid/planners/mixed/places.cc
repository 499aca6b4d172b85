#include "braid/planners/mixed/places.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "braid/base/index.h"
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

std::vector<std::int32_t> MixedPlaces::key(std::span<const MixedPlace> places) const {
  std::vector<std::int32_t> key;
  key.reserve(2 * places.size() * runs_.size());
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    std::int32_t first = std::numeric_limits<std::int32_t>::max(), end = 0;
    for (const MixedPlace& place : places) {
      if (place.takes[k] == 0) continue;
      first = std::min(first, place.used[k]);
      end = std::max(end, place.used[k] + place.takes[k]);
    }
    std::int32_t shift = 0;
    if (alike_ && end > 0) {
      const auto per_node = static_cast<std::int32_t>(runs_[k].devices_per_node);
      const bool inside = first / per_node == (end - 1) / per_node;
      shift = inside ? first : first / per_node * per_node;
    }
    for (const MixedPlace& place : places) {
      key.push_back(place.takes[k] == 0 ? 0 : place.used[k] - shift);
      key.push_back(place.takes[k]);
    }
  }
  return key;
}

std::optional<MixedPlaces::Node> MixedPlaces::only_node(const MixedPlace& place) const {
  std::optional<Node> only;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    if (place.takes[k] == 0) continue;
    const auto per_node = static_cast<std::int32_t>(runs_[k].devices_per_node);
    const std::int32_t first = place.used[k] / per_node;
    const std::int32_t last = (place.used[k] + place.takes[k] - 1) / per_node;
    if (only || first != last) return std::nullopt;
    only = Node{static_cast<std::int32_t>(k), first};
  }
  return only;
}

std::vector<std::int32_t> MixedPlaces::message_key(const MixedPlace& from,
                                                   const MixedPlace& to) const {
  const MixedPlace both[] = {from, to};
  const std::optional<Node> a = only_node(from), b = only_node(to);
  if (!alike_ || !a || !b) return key(both);
  const std::int32_t sent = from.takes[at(a->kind)], received = to.takes[at(b->kind)];
  const std::int32_t more = std::max(sent, received), fewer = std::min(sent, received);
  // Between nodes all flows share either uplink; inside one, as many as there are share the ports
  // of a device of the smaller side, and the busiest of these is the slowest.
  if (*a == *b) return {a->kind, (more + fewer - 1) / fewer};
  return {a->kind, b->kind, more};
}

double MixedPlaces::message_s(const MixedPlace& from, const MixedPlace& to, double bytes) {
  if (bytes <= 0) return 0;
  std::vector<std::int32_t> name = message_key(from, to);
  auto known = messages_.find(name);
  if (known == messages_.end()) {
    const std::vector<Flow> flows = handover_flows(devices(from), devices(to));
    meet(std::ssize(flows));
    known = messages_.emplace(std::move(name), FlowTimes(system_, flows)).first;
  }
  return known->second.slowest_s(bytes);
}

}  // namespace braid
