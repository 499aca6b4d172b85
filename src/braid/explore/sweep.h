#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "braid/explore/point_result.h"
#include "braid/explore/point_store.h"

namespace braid {

struct Sweep {
  std::vector<PointResult> results;  ///< By number of the point.
  std::size_t resumed = 0;           ///< How many of them were in the store.
};

/// Plans all points of a space, in parallel; those that `store` (may be null) has are not planned
/// again, and the others are put there as they are done, on disk every half second at the latest.
/// With `plans`, a folder that exists, the plan of every point that has one is there as
/// plan_file_name(), as `braid plan -o` writes it; a point that the store has is planned again
/// where its file is missing. Results do not depend on the number of threads nor on what the store
/// had. `progress` (may be empty) is told how many points are done, one call at a time. Throws
/// Error when the store or a plan cannot be written.
Sweep sweep_space(const Space& space, PointStore* store,
                  const std::function<void(std::size_t done)>& progress = {},
                  const std::string& plans = {});

/// "12-h100-fat-tree.json": the point's number and the names that tell it from others.
std::string plan_file_name(const Space& space, std::size_t number);

}  // namespace braid
