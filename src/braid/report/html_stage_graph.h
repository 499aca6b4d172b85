#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// The stages as a graph that runs down the rows of a chart.
struct StageGraphDrawing {
  std::vector<std::size_t> lanes;                          ///< [row], from 0.
  std::vector<std::pair<std::size_t, std::size_t>> edges;  ///< Rows that hand over, downwards.
  std::vector<std::string> titles;                         ///< [row], for who points at its dot.
};

/// Of the drawn stages (ascending), each in a row of its own. Stages that follow each other share a
/// lane; what runs beside them has lanes of its own.
StageGraphDrawing stage_graph_drawing(const Plan& plan, const std::vector<std::size_t>& drawn);

}  // namespace braid
