#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/run/rank_link.h"

namespace braid {

/// Where the processes of a run find each other.
struct MeetingPoint {
  std::string file;     ///< On one machine: a file that is not there yet.
  std::string address;  ///< Else the host of rank 0, …
  int port = 0;         ///< … and its port.
};

/// Joins this rank to the others with Gloo. `groups`: the ranks of each, ascending. Waits up to
/// `timeout_s` for them, and later as long for each message. Throws LostPeer when one does not
/// come.
std::unique_ptr<RankLink> gloo_link(const MeetingPoint& place, std::int32_t rank,
                                    std::int32_t ranks,
                                    std::span<const std::vector<std::int32_t>> groups,
                                    double timeout_s);

}  // namespace braid
