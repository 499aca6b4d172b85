#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/search/amp_window.h"
#include "braid/search/partition.h"

namespace braid {

/// Layers to be split over a pipeline whose stages' devices are fixed.
struct AssignmentChain {
  std::vector<AssignmentStage> stages;
  /// Time to hand a micro-batch over from stage i to i + 1 when the cut lies before layer l, at
  /// [(l - 1) · (stages - 1) + i]: (layers - 1) rows.
  std::vector<double> boundary_s;
  std::int64_t micro_batches = 1;

  std::size_t layers() const { return stages.front().time_before_s.size() - 1; }
};

/// The time of a pipeline in AMP's model (Li et al. 2022, equation 5):
/// (m - 1) · max stage time + sum of stage times + sum of handover times.
double amp_pipeline_s(const AssignmentChain& chain, const Ends& ends);

struct LayerAssignment {
  Ends ends;
  double pipeline_s = 0;  ///< amp_pipeline_s.
};

/// The split of the layers into non-empty stages for which amp_pipeline_s is least: exact. nullopt
/// when memory allows none or there are fewer layers than stages. Cost: O(stages · layers) for each
/// bottleneck tried; a few dozen usually are enough.
std::optional<LayerAssignment> assign_layers(const AssignmentChain& chain);

/// Stages to be had on one type of device.
struct StageType {
  std::int32_t count = 1;             ///< How many there are.
  std::vector<double> time_before_s;  ///< As AssignmentStage::time_before_s.
  /// By place in the pipeline, as AssignmentStage::first_allowed; empty: no limit.
  std::vector<std::vector<std::int32_t>> first_allowed;
};

/// Layers to be split over a pipeline whose stages may come in any order.
struct TypedChain {
  std::vector<StageType> types;
  std::int32_t stages = 1;  ///< At most the sum of the counts.
  /// What a cut before layer l sends on, at [l - 1], and the time per unit from a stage of type a
  /// to one of type b, at [a · types + b].
  std::vector<double> boundary_bytes;
  std::vector<double> s_per_byte;
  std::int64_t micro_batches = 1;

  std::size_t layers() const { return types.front().time_before_s.size() - 1; }
};

struct TypedAssignment {
  std::vector<std::int32_t> type;  ///< Of each stage.
  Ends ends;
  double pipeline_s = 0;
};

/// The same pipeline with these types of stages, for amp_pipeline_s and assign_layers. Points into
/// `chain`.
AssignmentChain with_types(const TypedChain& chain, const std::vector<std::int32_t>& type);

/// The order of types and split of layers, taken together, for which amp_pipeline_s is least:
/// exact. nullopt when memory allows none. Cost: O(types² · layers · Π(count + 1)) for each
/// bottleneck tried, so types must be few.
std::optional<TypedAssignment> assign_layers_and_types(const TypedChain& chain);

}  // namespace braid
