#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "braid/explore/findings.h"

namespace braid {

/// From pale to dark blue for shares from 0 to 1, and whether text on it must be white.
std::string heat_colour(double share);
bool is_dark(double share);

/// A drawing (SVG) of what these colours stand for, from 0 to 100 %, below a line that says of
/// what.
std::string heat_scale(const std::string& title);

/// A drawing (SVG) and what it shows in a line, which it says itself unless the page around it
/// does.
struct TitledMap {
  std::string title, svg;
};
enum class TitleOfMap : std::uint8_t { drawn, on_page };

/// A heat map of a figure over the systems of a space for one workload and way to plan, as
/// DFModel's figures 10, 12, 14 and 16: chips and memories down, networks and links across. Each
/// cell has its value in %, all but utilisation of the best, and the scale of colours stands
/// below with what 100 % is; axes are named at the left; points without a plan are grey and say why
/// where the mouse rests. Light or dark as the viewer is.
TitledMap heat_map(const Space& space, std::span<const PointResult> results, std::size_t workload,
                   std::size_t method, SpaceFigure figure, TitleOfMap where);

/// Where the time goes, as DFModel's figures 11, 13, 15 and 17: for each system a bar of the shares
/// of the parts that results of the space have, of planned ones those of the busiest stage. Where
/// the parts overlap a bar for each: what it would take alone of the time that all take together.
TitledMap breakdown_map(const Space& space, std::span<const PointResult> results,
                        std::size_t workload, std::size_t method, TitleOfMap where);

}  // namespace braid
