#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/graph/graph.h"

namespace braid {

/// Reads the `"braid": "graph", "version": 1` form (docs/file-formats.md). Operators may be listed
/// in any order and are put in topological order; a graph without layers is grouped into layers;
/// repeated layers are marked. Throws Error with file and line for every mistake. Linear time for
/// operators in order.
Graph graph_from_json(const Value& root);

/// The same form, one line for each tensor and operator; reads back as an equal graph, up to the
/// kinds of layers, which are found anew. Written straight to text: takes the memory of the text
/// alone.
std::string to_json_text(const Graph& graph);

/// The same as a tree, for documents that hold a graph as a part; several times larger.
Json to_json(const Graph& graph);

}  // namespace braid
