#pragma once

#include <cstddef>

#include "braid/base/json.h"
#include "braid/explore/point_result.h"

namespace braid {

/// A point as `braid explore --json` has it. With the name of its plan's file below the folder of
/// results, where plans are kept.
Json point_json(const Space& space, const PointResult& result, std::size_t number, bool plans);

}  // namespace braid
