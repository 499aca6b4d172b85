#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/document.h"
#include "braid/system/system.h"

namespace braid {

// What is taken where a chip's or cluster's file leaves something out (docs/file-formats.md,
// "Defaults"). Each is in the middle half of what the catalogue's GPUs and its clusters of chips
// that are built have, which a test computes from the files, so that a new file leaves the defaults
// as they are; whoever takes one says so among the assumptions.

/// What a link reaches.
struct LinkDefaults {
  double latency_s, efficiency, half_bytes;
};
inline constexpr LinkDefaults kLinkInNode = {3e-6, 0.8, 512 * 1024};
inline constexpr LinkDefaults kLinkBetweenNodes = {8e-6, 0.9, 512 * 1024};
inline constexpr LinkDefaults kLinkOfTorus = {1e-6, 0.9, 256 * 1024};

/// How near kernels come to a chip's peaks. Chips that run partitions of kernels are not driven
/// operator by operator and have transfers of their own.
Efficiency default_efficiency(ChipExecution execution);

/// Share of a device's memory that no plan may use.
inline constexpr double kReservedShare = 0.038;

/// What a chip keeps of its memory for itself, where a user may keep more of it free: what the
/// catalogue says of a chip of that name, else the usual share; never more than it does keep. Cost:
/// reads one file of the catalogue.
double usual_reserve_bytes(const Chip& chip);

/// What the catalogue says of the machine that a chip is in: the first cluster, by name, of that
/// chip alone.
struct ReferenceCluster {
  std::string name;
  std::optional<Memory> host;  ///< A device's share.
  NetworkLevel inside;
  std::vector<NetworkLevel> levels;
};
/// nullopt where the catalogue has none. Cost: reads one file of the catalogue.
std::optional<ReferenceCluster> reference_cluster(const std::string& chip);

/// Where the defaults of a cluster's links come from: the reference cluster's link at the same
/// place, if there is one and it has the same topology, else the table.
struct LinkSource {
  LinkDefaults defaults;
  std::string said;  ///< "as in dgx-h100"
};
/// `level`: 0 inside a node, 1 … above.
LinkSource link_source(const std::optional<ReferenceCluster>& reference, Topology topology,
                       std::size_t level);

}  // namespace braid
