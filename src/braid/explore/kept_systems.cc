#include "braid/explore/kept_systems.h"

#include <algorithm>
#include <utility>

#include "braid/base/pareto_front.h"

namespace braid {
namespace {

SystemMerit merit_of(const FoundSystem& system) { return {system.value, system.usd, system.watts}; }

std::tuple<double, double, double> rank_of_system(const FoundSystem& system) {
  return rank_of(merit_of(system));
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

bool KeptSystems::is_no_worse(const FoundSystem& known, const SystemMerit& other) const {
  return known.value >= other.value && (!systems_.has_prices || known.usd <= other.usd) &&
         (!systems_.has_powers || known.watts <= other.watts);
}

bool KeptSystems::settles(const SystemMerit& most) const {
  if (!(most.value > 0)) return true;
  SystemMerit needed = most;
  needed.value /= 1 + search_.within;
  if (search_.what != SearchFor::front) {
    return best_.size() >= search_.keep &&
           rank_of_system(best_[search_.keep - 1]) >= rank_of(needed);
  }
  return is_dominated(best_, needed, [this](const FoundSystem& known, const SystemMerit& other) {
    return is_no_worse(known, other);
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
  if (search_.what == SearchFor::front) {
    const auto no_worse = [this](const FoundSystem& a, const FoundSystem& b) {
      return is_no_worse(a, merit_of(b));
    };
    if (is_dominated(best_, system, no_worse)) return;
    put_in_front(best_, system, no_worse);
  } else {
    best_.push_back(std::move(system));
  }
  const auto added = best_.end() - 1;
  const auto place = std::find_if(best_.begin(), added, [&](const FoundSystem& known) {
    return rank_of_system(known) < rank_of_system(*added);
  });
  std::rotate(place, added, best_.end());
}

std::vector<FoundSystem> KeptSystems::take() {
  if (search_.what != SearchFor::front && best_.size() > search_.keep) best_.resize(search_.keep);
  return std::move(best_);
}

}  // namespace braid
