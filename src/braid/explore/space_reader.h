#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/explore/space.h"

namespace braid {

/// Reads a space (YAML or JSON; docs/explore.md has its keys). Paths in it are relative to its
/// folder. Throws Error with file, line and key for whatever cannot be: an unknown key, name or
/// word, an axis without values, a quantity without unit, sizes whose product is not the number of
/// devices, kernels too large to count, more than kMostPoints points.
Space read_space(const std::string& path);
Space parse_space(const Document& document);

// Parts of it, by file.
SpaceWorkload read_space_workload(const std::string& name, const Value& value, const Space& space);
SpaceChip read_space_chip(const std::string& name, const Value& value);
SpaceMemory read_space_memory(const std::string& name, const Value& value);
SpaceTopology read_space_topology(const std::string& name, const Value& value,
                                  std::int64_t devices);
SpaceLinks read_space_links(const std::string& name, const Value& value);
/// Needs the axes of `space`.
SpaceRatio read_space_ratio(const Value& value, const Space& space);

/// Index of a word among names; throws Error at `value` with the nearest as the remedy.
std::size_t word_index(const Value& value, std::string_view what,
                       const std::vector<std::string_view>& names);

/// "24 USD per GB/s" in USD per GB/s, "0.05 W per GB/s" in W per GB/s; 0 when missing.
double read_rate_price(const Value& value, Unit unit);

}  // namespace braid
