#pragma once

#include <cstdint>
#include <string>

#include "braid/graph/graph.h"

namespace braid {

/// Where sizes are from, and the length of a sample.
struct ShapeSource {
  std::string file;  ///< Where the sizes stand; the graph's name.
  std::int64_t seq_len = 0;
};

/// The decoder-only transformer of these sizes, such as a trainer's arguments state: the same graph
/// that its config.json would give, but for OPT, whose position table has rows before the first.
/// Throws Error, naming `file`, where a size that it takes is missing, too large or does not fit
/// the others, or a hybrid has a kind of layer that is not modelled.
///
///     ModelShape shape;                  // sizes, as import_megatron() reads them
///     Graph graph = graph_of_shape(shape, {.file = "train.sh", .seq_len = 4096});
Graph graph_of_shape(const ModelShape& shape, const ShapeSource& source);

}  // namespace braid
