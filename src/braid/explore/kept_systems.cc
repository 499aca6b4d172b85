#include "braid/explore/kept_systems.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

std::tuple<double, double, double> rank_of_system(const FoundSystem& system) {
  return rank_of({system.value, system.usd, system.watts});
}

}  // namespace

std::tuple<double, double, double> rank_of(const SystemMerit& merit) {
  return {merit.value, -merit.watts, -merit.usd};
}

KeptSystems::KeptSystems(const Space& space)
    : systems_(std::get<SystemSpace>(space.points)), search_(*systems_.search) {
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    if (space.axes[axis].name == "memory") memory_axis_ = axis;
  }
}

bool KeptSystems::costs_no_more(const FoundSystem& known, double usd, double watts) const {
  return (!systems_.has_prices || known.usd <= usd) &&
         (!systems_.has_powers || known.watts <= watts);
}

bool KeptSystems::settles(const SystemMerit& most) const {
  if (!(most.value > 0)) return true;
  SystemMerit needed = most;
  needed.value /= 1 + search_.within;
  if (search_.what != SearchFor::front) {
    return best_.size() >= search_.keep &&
           rank_of_system(best_[search_.keep - 1]) >= rank_of(needed);
  }
  return std::any_of(best_.begin(), best_.end(), [&](const FoundSystem& known) {
    return known.value >= needed.value && costs_no_more(known, most.usd, most.watts);
  });
}

FoundSystem* KeptSystems::with_other_memory(const FoundSystem& system) {
  if (!memory_axis_) return nullptr;
  for (FoundSystem& known : best_) {
    SpacePoint place = known.place;
    place[*memory_axis_] = system.place[*memory_axis_];
    if (rank_of_system(known) == rank_of_system(system) && place == system.place) return &known;
  }
  return nullptr;
}

void KeptSystems::add(FoundSystem system) {
  if (FoundSystem* known = with_other_memory(system); known != nullptr) {
    const auto bytes = [&](const FoundSystem& one) {
      return systems_.memories[one.place[*memory_axis_]].bytes;
    };
    if (bytes(system) < bytes(*known)) *known = std::move(system);
    return;
  }
  const auto place = std::find_if(best_.begin(), best_.end(), [&](const FoundSystem& known) {
    return rank_of_system(known) < rank_of_system(system);
  });
  best_.insert(place, std::move(system));
  if (search_.what != SearchFor::front) return;
  // By falling throughput: what dominates a system stands before it.
  std::vector<FoundSystem> front;
  for (FoundSystem& one : best_) {
    const bool dominated = std::any_of(front.begin(), front.end(), [&](const FoundSystem& known) {
      return costs_no_more(known, one.usd, one.watts);
    });
    if (!dominated) front.push_back(std::move(one));
  }
  best_ = std::move(front);
}

std::vector<FoundSystem> KeptSystems::take() {
  if (search_.what != SearchFor::front && best_.size() > search_.keep) best_.resize(search_.keep);
  return std::move(best_);
}

}  // namespace braid
