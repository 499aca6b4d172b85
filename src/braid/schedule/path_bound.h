#pragma once

#include <vector>

#include "braid/schedule/pipeline.h"

namespace braid {

/// Buffers of pipeline_path_bound_s(); any contents will do.
struct PathBoundWorkspace {
  std::vector<double> before_s, after_s;  ///< [stage]
};

/// A lower bound on the iteration time of a pipeline of one chunk a stage, whatever the order of
/// its passes: of any stage, the longest way of a first micro-batch to it, all its passes, and the
/// longest way of the last gradients back from it, with what synchronises at either end. Transfers
/// lead from lower to higher stages and are sorted by their sources. Cost: linear in stages and
/// transfers; no allocation once the workspace has grown.
double pipeline_path_bound_s(const Pipeline& pipeline, PathBoundWorkspace& workspace);

}  // namespace braid
