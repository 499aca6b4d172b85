#include "braid/explore/architecture_family.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

namespace braid {
namespace {

using Sizes = std::array<unsigned, 3>;

/// Exponents of what members of a family differ in.
Sizes sizes_of(const Architecture& one) {
  const auto exponent = [](std::uint16_t size) {
    return static_cast<unsigned>(std::countr_zero(size));
  };
  return {exponent(one.tensor_cores), exponent(one.vector_cores), exponent(one.global_buffer_mib)};
}

}  // namespace

std::vector<ArchitectureFamily> families_by_array(std::span<const Architecture> all) {
  std::vector<ArchitectureFamily> families;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> place_of;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const auto [place, fresh] = place_of.try_emplace({all[i].width, all[i].depth}, families.size());
    if (fresh) families.emplace_back();
    families[place->second].push_back(i);
  }
  return families;
}

Architecture envelope(std::span<const Architecture> all, const ArchitectureFamily& family) {
  Architecture best = all[family.front()];
  for (const std::uint32_t member : family) {
    const Architecture& one = all[member];
    best.tensor_cores = std::max(best.tensor_cores, one.tensor_cores);
    best.vector_cores = std::max(best.vector_cores, one.vector_cores);
    best.global_buffer_mib = std::max(best.global_buffer_mib, one.global_buffer_mib);
  }
  return best;
}

std::vector<ArchitectureFamily> split_family(std::span<const Architecture> all,
                                             const ArchitectureFamily& family) {
  Sizes least = sizes_of(all[family.front()]), most = least;
  for (const std::uint32_t member : family) {
    const Sizes sizes = sizes_of(all[member]);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      least[i] = std::min(least[i], sizes[i]);
      most[i] = std::max(most[i], sizes[i]);
    }
  }
  std::size_t widest = 0;
  for (std::size_t i = 1; i < least.size(); ++i) {
    if (most[i] - least[i] > most[widest] - least[widest]) widest = i;
  }
  const unsigned middle = (least[widest] + most[widest]) / 2;
  std::vector<ArchitectureFamily> parts(2);
  for (const std::uint32_t member : family) {
    parts[sizes_of(all[member])[widest] > middle ? 0 : 1].push_back(member);
  }
  return parts;
}

}  // namespace braid
