#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/planners/piper/problem.h"
#include "braid/system/system.h"

namespace braid {

/// What Piper takes a homogeneous system's network for (Tarnawski et al. 2021, Appendix E): nodes
/// of devices, and above them the system's levels. A device has its share of a node's network, a
/// node or larger unit what all its devices send together, less oversubscription. Devices of a last
/// node that is not full are left out. Where the units do not divide evenly among those of a level
/// above, and where a level joins but one, it is taken together with the next at the slower rate.
/// Always at least one level.
std::vector<PiperLevel> piper_levels_of(const System& system);

/// All devices of `levels`.
std::int64_t device_count(const std::vector<PiperLevel>& levels);

/// For each stage of a solution the devices that it takes, ascending. On a flat network stages of
/// higher tp come first, so that powers of two stay within nodes. With levels, the superstages of a
/// level have its units one after another, and each unit is filled alike.
std::vector<std::vector<std::int64_t>> devices_of_stages(const PiperSolution& solution,
                                                         const std::vector<PiperLevel>& levels);

/// An order of axes by which stages of one form, `parallel`, lie on these devices each; nullopt:
/// there is none.
std::optional<std::vector<Axis>> order_of_axes(
    Parallelism parallel, const std::vector<std::vector<std::int64_t>>& devices);

}  // namespace braid
