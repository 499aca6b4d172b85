#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace braid {

/// Edges that break the symmetry of interchangeable branches: layers of such branches come in turn,
/// the j-th of one branch before the j-th of the next. A branch is a longest run of layers without
/// a fork or join in between; those are alike that have equal labels all along (`label[l]` is all
/// that is known of layer l), the same layers before them and the same behind. `edges` go from
/// lower to higher numbers.
///
/// Stages that follow one another lose nothing by keeping to these edges: sorting at every cut how
/// far the branches are permutes them behind it, so that stages hold as many of each label and hand
/// over as much. Cuts become fewer: n tables that are alike have n + 1 in place of 2^n.
std::vector<std::pair<std::int32_t, std::int32_t>> symmetry_breaking_edges(
    std::span<const std::size_t> label,
    std::span<const std::pair<std::int32_t, std::int32_t>> edges);

}  // namespace braid
