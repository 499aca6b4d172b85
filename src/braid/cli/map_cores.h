#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "braid/graph/graph.h"
#include "braid/system/chip.h"

namespace braid {

/// `braid map` of a model on a chip that is an accelerator.
struct CoreMapOptions {
  std::optional<LayerId> layer;  ///< Nullopt: all kinds of layers.
  std::int64_t micro_batch = 1;  ///< Samples.
  bool training = false;         ///< Backward passes as well.
  std::int64_t budget = 0;       ///< Starts of operators that a pass's schedule may try.
  std::string gantt;             ///< File for a picture of the layer's schedules; empty: none.
  bool json = false;
};

/// Schedules the operators of each pass of the layers on the chip's cores and prints what they
/// take: of one layer every operator, else a line for each kind of layer. The picture is a page if
/// its name ends in .html, else SVG of the last pass. Returns the exit status.
int map_on_cores(const Graph& graph, const Chip& chip, const CoreMapOptions& options);

}  // namespace braid
