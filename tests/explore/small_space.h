#pragma once

#include <string>
#include <utility>
#include <variant>

#include "braid/base/document.h"
#include "braid/explore/space_reader.h"

#include "explore/small_space_text.h"

namespace braid {

inline Space space_from(const std::string& text) {
  return parse_space(Document::parse(text, Document::Syntax::yaml, "space.yaml"));
}

inline const DataflowSpace& dataflow_of(const Space& space) {
  return std::get<DataflowSpace>(space.points);
}
inline const SystemSpace& systems_of(const Space& space) {
  return std::get<SystemSpace>(space.points);
}

/// A space of DFModel's in which `change` has had its way; without ratios.
template <typename Change>
Space changed(const Space& space, Change&& change) {
  DataflowSpace points = dataflow_of(space);
  change(points);
  return make_space(space.name, std::move(points));
}

}  // namespace braid
