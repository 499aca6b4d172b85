#pragma once

#include <span>

#include "braid/system/system.h"

namespace braid {

/// One mixed system out of several: the parts' groups in order, each with its own nodes and its own
/// uplinks, on one network through which every node reaches every other: between two nodes the
/// slower uplink decides. Latency, efficiency and message size are the worst of the parts', and are
/// listed as assumed. Throws Error when a part has not exactly one network above its nodes, has a
/// bandwidth matrix, or (other than the last) a partly filled node, or there are too many devices.
System join_systems(std::span<const System> parts);

}  // namespace braid
