#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "braid/base/document.h"

namespace braid {

// Reads of a model's config.json. All throw Error naming the file, line and field. The bounds keep
// products of three sizes (rows, width, width) within 64 bits.

inline constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostLayers = 100000;

/// A size from 1 to `most`.
std::int64_t size_of(const Value& config, std::string_view key, std::int64_t most = kMostWidth);

/// As size_of, but `otherwise` when the field is missing or null.
std::int64_t size_or(const Value& config, std::string_view key, std::int64_t otherwise,
                     std::int64_t most = kMostWidth);

/// True or false; `otherwise` when the field is missing or null.
bool flag_or(const Value& config, std::string_view key, bool otherwise);

/// A list of sizes from 1 to `most`, at least `least_count` of them.
std::vector<std::int64_t> sizes_of(const Value& config, std::string_view key,
                                   std::size_t least_count = 1, std::int64_t most = kMostWidth);

}  // namespace braid
