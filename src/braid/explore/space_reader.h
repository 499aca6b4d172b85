#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/explore/space.h"

namespace braid {

/// Reads a space (YAML or JSON; docs/explore.md has its keys): of systems that planners plan for
/// or, with `rules`, of DFModel's. Paths in it are relative to its folder. Throws Error with file,
/// line and key for whatever cannot be: an unknown key, name or word, an axis without values, a
/// quantity without unit, a network that is none, a price or power that only some systems have,
/// more than kMostPoints points.
///
///     Space space = read_space("examples/explore/llama-3-70b.yaml");
///     Sweep sweep = sweep_space(space, nullptr);
Space read_space(const std::string& path);
Space parse_space(const Document& document);

// By kind of space.
DataflowSpace read_dataflow_space(const Value& root);
SystemSpace read_system_space(const Value& root);

}  // namespace braid
