#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/chip/kernel_mapper.h"
#include "braid/dataflow/dataflow_job.h"
#include "braid/dataflow/plan_rules.h"
#include "braid/dataflow/sharding.h"

namespace braid {

/// As DFModel's published runs, or with everything charged.
DataflowPlanRules published_plan_rules(const DataflowSetup& setup);
DataflowPlanRules default_plan_rules(const DataflowSetup& setup);

/// One stage of a pipeline over the kernels of a whole model, and its partitions in the mapping.
struct PlannedStage {
  std::size_t first_partition = 0, partitions = 0;
  double mapped_s = 0;   ///< A micro-batch through its partitions.
  double message_s = 0;  ///< Tensors handed on, its own and those that pass through.
  double time_s = 0;
};

/// A sharding of kernels among chips, their mapping onto each, and the job's time.
struct DataflowPlan {
  DataflowSetup setup;  ///< With the sizes and roles of the network that it uses.
  Sharding dims;
  ChipWork work;
  MappingOutcome outcome;  ///< Of shardings and mappings, where both are searched.
  std::int64_t boxes = 0;  ///< Sets of shardings that were bounded; 0: shardings were not searched.
  JobTime time;
  std::vector<PlannedStage> stages;  ///< Of a graph of the whole model; else empty.
};

/// Maps a setup whose network's roles are given. With time-priced sharding the one of fewest bytes
/// is tried as well, with grid_sharding that one too, and the fastest kept; with joint_sharding all
/// are tried, and all others searched (divide_and_map()). A graph of a whole model is split among
/// stages as well, for each of those to try (plan_stages()).
DataflowPlan plan_dataflow(const DataflowSetup& setup, const DataflowPlanRules& rules);

enum class FabricSearch : std::uint8_t {
  roles,  ///< Which dimension divides kernels, layers or samples.
  shapes  ///< Also the dimensions' sizes, over all products that are the number of chips.
};

struct DataflowSearch {
  DataflowPlan best;         ///< Its mapping is empty when nothing fits.
  std::int64_t tried = 0;    ///< Networks mapped.
  std::int64_t skipped = 0;  ///< Networks whose bound on time is above the best.
};

/// The fastest plan over the roles (and sizes) of the network's dimensions, each with the best
/// sharding and mapping; layers and micro-batches must divide evenly, and each chip has a role.
/// Kernels of a whole model go to any number of stages.
/// Never slower than the given roles if they are valid, and exact where each mapping is.
/// Networks are tried in ascending order of a bound: what a chip computes, sends and moves at
/// least, idle time of the pipeline. One that is as good as an earlier one, or cannot beat the best
/// by a part in 1e9, is skipped. Other workloads than layers have sizes to search, but no roles.
DataflowSearch search_fabrics(const DataflowSetup& setup, const DataflowPlanRules& rules,
                              FabricSearch what);

}  // namespace braid
