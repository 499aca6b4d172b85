#pragma once

#include <cstdint>
#include <string>

#include "braid/base/error.h"
#include "braid/system/system.h"

namespace braid {

/// Most devices of a system.
inline constexpr std::int64_t kMostDevices = std::int64_t{1} << 31;

/// How many devices or nodes are asked for: the part of `NAME:64` or `NAME:8nodes` after the colon.
struct DeviceCount {
  std::int64_t number = 0;  ///< 0: not said.
  bool nodes = false;
};

/// Chip or cluster by catalogue name or file, `named` in another file or nowhere; a relative path
/// is looked up beside that file before the working directory. `depth` counts the cluster files
/// that led here; more than 8 (a file that names itself) are refused. Throws Error.
Chip load_chip(const std::string& name_or_path, const Where& named);
System load_cluster(const std::string& name_or_path, const DeviceCount& count, const Where& named,
                    int depth);

}  // namespace braid
