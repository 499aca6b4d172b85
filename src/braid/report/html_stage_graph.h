#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

struct StageGraphDrawing {
  double width = 0;  ///< 0 for a single stage, of which nothing is drawn.
  std::string body;  ///< SVG, from x = -width to 0.
};

/// The stages as a graph that runs down the rows of a chart, `row_height` each: a dot in the row of
/// every drawn stage (ascending), lines to those that it hands over to. Stages that follow each
/// other share a lane; what runs beside them has lanes of its own.
StageGraphDrawing stage_graph_drawing(const Plan& plan, const std::vector<std::size_t>& drawn,
                                      double row_height);

}  // namespace braid
