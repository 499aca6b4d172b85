#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/explore/architecture_family.h"
#include "braid/explore/kept_systems.h"
#include "braid/explore/space.h"
#include "braid/profile/layer_activity.h"

namespace braid {

inline constexpr std::size_t kChipAxis = kMethodAxis + 1;
inline constexpr std::size_t kMemoryAxis = kChipAxis + 1;  ///< Where the space has memories.

/// Price and power of all but the chips of a system, and how many chips there are; of one that is
/// no architecture, price and power of all.
struct SystemSurroundings {
  double devices = 0, usd = 0, watts = 0;
};

/// Systems that differ in architecture and memory alone. Without architectures, a family is one
/// system.
struct SystemFamily {
  SpacePoint place;  ///< Of its first member with its first memory.
  ArchitectureFamily members;
  std::vector<std::size_t> memories;  ///< None has more of anything than the first.
  SystemSurroundings rest;            ///< No memory's is less.
  std::vector<double> least_s;        ///< [workload]: of a batch, on any member.
  std::vector<ChipActivity> least;    ///< [workload]: likewise; where energy is searched for.
  SystemMerit merit;                  ///< No member has more of value, nor less price and power.
  bool is_bounded = false;

  std::size_t systems() const {
    return std::max<std::size_t>(1, members.size()) * std::max<std::size_t>(1, memories.size());
  }
};

/// The place with each of the memories; the place itself where the space has none.
std::vector<SpacePoint> with_each_memory(const SpacePoint& place,
                                         const std::vector<std::size_t>& memories);

/// The families of a space that has a search, and outlives this.
class SystemFamilies {
 public:
  explicit SystemFamilies(const Space& space);

  /// Those that all others are parts of, without merits.
  std::vector<SystemFamily> first() const;
  /// The parts of a family, without merits of their own; none: it is one system. Members part
  /// before memories. Of one architecture, each memory alone, of which the first keeps the bound.
  std::vector<SystemFamily> parts(const SystemFamily& family) const;
  /// Sets what no member has more of, or less of price and power.
  void set_merit(SystemFamily& family) const;
  /// The figure searched for, of which no member has more.
  double value_of(const SystemFamily& family) const;

  /// Of all; 0: chips are no architectures.
  std::size_t architectures() const { return costs_.size(); }

 private:
  void add_architectures(std::span<const ArchitectureFamily> families,
                         const std::vector<std::size_t>& memories, const SpacePoint& at,
                         std::vector<SystemFamily>& to) const;
  SystemSurroundings surroundings(const SpacePoint& place) const;
  std::vector<double> least_energies(const SystemFamily& family) const;

  const Space& space_;
  const SystemSpace& systems_;
  const SystemSearch& search_;
  std::vector<SystemCost> costs_;  ///< [architecture]: of a chip.
};

}  // namespace braid
