#include "braid/explore/system_family.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "braid/base/infinity.h"
#include "braid/base/parallel.h"
#include "braid/base/rounding.h"
#include "braid/explore/memory_groups.h"
#include "braid/explore/search_value.h"

namespace braid {
std::vector<SpacePoint> with_each_memory(const SpacePoint& place,
                                         const std::vector<std::size_t>& memories) {
  if (memories.empty()) return {place};
  std::vector<SpacePoint> places(memories.size(), place);
  for (std::size_t m = 0; m < memories.size(); ++m) places[m][kMemoryAxis] = memories[m];
  return places;
}

SystemFamilies::SystemFamilies(const Space& space)
    : space_(space), systems_(std::get<SystemSpace>(space.points)), search_(*systems_.search) {
  if (!systems_.architectures) return;
  const SystemArchitectures& every = *systems_.architectures;
  costs_.resize(every.all.size());
  parallel_for(costs_.size(), [&](std::size_t i) {
    const Chip chip = chip_of(every, every.all[i]);
    costs_[i] = {chip.price_usd.value_or(0), chip.power_w.value_or(0)};
  });
}

std::vector<SystemFamily> SystemFamilies::first() const {
  std::vector<SystemFamily> all;
  if (!systems_.architectures) {
    for (SpacePoint& place : places_from(space_, kChipAxis)) {
      const SystemCost cost = cost_of(systems_, place);
      SystemFamily& family = all.emplace_back();
      family.place = std::move(place);
      family.rest = {0, cost.usd, cost.watts};
    }
  } else {
    const auto families = families_by_array(systems_.architectures->all);
    const auto groups = memory_groups(systems_.memories);
    const std::size_t held = systems_.memories.empty() ? kChipAxis : kMemoryAxis;
    for (const SpacePoint& place : places_from(space_, held + 1)) {
      for (const std::vector<std::size_t>& memories : groups) {
        add_architectures(families, memories, place, all);
      }
    }
  }
  for (SystemFamily& family : all) family.least_s.resize(systems_.workloads.size());
  return all;
}

void SystemFamilies::add_architectures(std::span<const ArchitectureFamily> families,
                                       const std::vector<std::size_t>& memories,
                                       const SpacePoint& at, std::vector<SystemFamily>& to) const {
  const std::vector<SpacePoint> places = with_each_memory(at, memories);
  SystemSurroundings least = surroundings(places.front());
  for (const SpacePoint& place : places) {
    const SystemSurroundings rest = surroundings(place);
    least.usd = std::min(least.usd, rest.usd);
    least.watts = std::min(least.watts, rest.watts);
  }
  for (const ArchitectureFamily& members : families) {
    SystemFamily& family = to.emplace_back();
    family.place = places.front();
    family.place[kChipAxis] = members.front();
    family.members = members;
    family.memories = memories;
    family.rest = least;
  }
}

/// With architectures.
SystemSurroundings SystemFamilies::surroundings(const SpacePoint& place) const {
  const SystemCost all = cost_of(systems_, place);
  const SystemCost& chip = costs_[place[kChipAxis]];
  SystemSurroundings rest;
  rest.devices = static_cast<double>(system_of(systems_, place).device_count);
  rest.usd = std::max(0.0, all.usd - rest.devices * chip.usd);
  rest.watts = std::max(0.0, all.watts - rest.devices * chip.watts);
  return rest;
}

std::vector<SystemFamily> SystemFamilies::parts(const SystemFamily& family) const {
  std::vector<SystemFamily> all;
  if (family.members.size() > 1) {
    for (ArchitectureFamily& part : split_family(systems_.architectures->all, family.members)) {
      SystemFamily& smaller = all.emplace_back(family);
      smaller.place[kChipAxis] = part.front();
      smaller.members = std::move(part);
      smaller.is_bounded = false;
    }
  } else if (family.memories.size() > 1) {
    for (const std::size_t memory : family.memories) {
      SystemFamily& one = all.emplace_back(family);
      one.place[kMemoryAxis] = memory;
      one.memories = {memory};
      one.rest = surroundings(one.place);
      one.is_bounded = memory == family.memories.front();
    }
  }
  return all;
}

void SystemFamilies::set_merit(SystemFamily& family) const {
  family.merit.usd = family.rest.usd;
  family.merit.watts = family.rest.watts;
  if (!family.members.empty()) {
    double usd = kInfinity, watts = kInfinity;
    for (const std::uint32_t member : family.members) {
      usd = std::min(usd, costs_[member].usd);
      watts = std::min(watts, costs_[member].watts);
    }
    family.merit.usd = kBelowRounding * (family.rest.usd + family.rest.devices * usd);
    family.merit.watts = kBelowRounding * (family.rest.watts + family.rest.devices * watts);
  }
  family.merit.value = value_of(family);
}

double SystemFamilies::value_of(const SystemFamily& family) const {
  const SystemCost cost{family.merit.usd, family.merit.watts};
  if (search_.what != SearchFor::energy) return search_value(systems_, family.least_s, cost);
  return search_value(systems_, least_energies(family), cost);
}

/// [workload]: joules of a batch that no plan on any member stays below; 0 where nothing is
/// known.
std::vector<double> SystemFamilies::least_energies(const SystemFamily& family) const {
  std::vector<double> joules(systems_.workloads.size(), 0);
  if (family.members.empty()) return joules;
  const AcceleratorDesign& rest = *systems_.architectures->rest.accelerator;
  for (std::size_t w = 0; w < family.least.size(); ++w) {
    ChipActivity does = family.least[w];
    if (!(family.least_s[w] < kInfinity)) {
      joules[w] = kInfinity;
      continue;
    }
    does.seconds = family.rest.devices * family.least_s[w];
    double least = kInfinity;
    for (const std::uint32_t member : family.members) {
      const Accelerator chip = accelerator_of(systems_.architectures->all[member], rest.chip);
      least = std::min(least, chip_energy(chip, rest.energy, does).total_j());
    }
    const double others = systems_.has_powers ? family.rest.watts * family.least_s[w] : 0;
    joules[w] = kBelowRounding * (least + others);
  }
  return joules;
}

}  // namespace braid
