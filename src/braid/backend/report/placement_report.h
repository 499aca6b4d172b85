#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/backend/place/place_network.h"

namespace braid {

/// What a report of a placement is about.
struct PlacementReport {
  std::string model;    ///< As the user gave it.
  std::string machine;  ///< machine_name().
  std::int64_t threads = 1;
  const FixedProgram& fixed;
  const std::vector<FoundBackend>& backends;
  const NetworkAnswer& answer;

  const NetworkWay& chosen() const { return answer.ways[answer.chosen]; }
};

/// What the terminal shows: which backend runs what, what that takes by its parts and as a whole,
/// and what every backend by itself takes.
std::string placement_report_text(const PlacementReport& report);

/// A picture of the network (SVG): a row for each group, in the order in which they run, coloured
/// by backend, with lines from what it reads and a bar for its time. Light or dark as the viewer
/// is.
std::string placement_svg(const PlacementReport& report);

/// A page with both.
std::string placement_page(const PlacementReport& report);

// Its parts.

/// Groups by backend and pattern, and what the slowest of them are.
std::string groups_table(const PlacementReport& report);
std::string ways_table(const PlacementReport& report);

}  // namespace braid
