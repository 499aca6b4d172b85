#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/graph/graph.h"
#include "braid/plan/outcome.h"
#include "braid/planners/job/degrees.h"
#include "braid/profile/layer_options.h"
#include "braid/profile/mapped_layer.h"
#include "braid/search/progress.h"

namespace braid {

/// A training job to be planned.
struct Job {
  /// The model, where there is one: for its bounds and its shape, and for its layers' costs where
  /// `layers` does not say them.
  const Graph* graph = nullptr;
  const LayerOptions* layers = nullptr;  ///< Null: the estimator over `graph` (EstimatedLayers).
  /// Mappings that are known from other jobs, on accelerators; may be null.
  std::shared_ptr<NestMemo> nests;
  std::string model_source;
  Precision precision;
  Trainer trainer;  ///< What runs the plan; `graph` is what it runs (adapt_graph).
  std::int64_t global_batch = 1;
  /// Where shardings of its layers come from. Others than manual ones are searched for on
  /// homogeneous systems alone.
  ShardingSource sharding = ShardingSource::manual;
};

/// Restrictions on the space; empty: everything that the model and system allow.
struct SpaceOptions {
  Degrees tp, pp, dp, cp, ep, vp, micro_batch;
  std::optional<bool> sequence_parallel;
  std::optional<bool> whole_experts;  ///< Where both tp and ep are above 1.
  std::optional<Recompute> recompute;
  std::optional<Zero> zero;
  std::optional<ScheduleKind> schedule;
  bool allow_offload = true;
  TrainerLimits can;         ///< Nothing but what the trainer can be told.
  bool all_devices = false;  ///< No plans that leave devices idle.
  int top = 1;               ///< How many plans to return.
  /// Where layers have a finite list of options: nothing else. Not owned; set by planners().
  const ListedExecutions* listed = nullptr;
};

/// How planners are called.
using PlanFunction = std::function<Outcome(const Job&, const System&, const SpaceOptions&,
                                           const Budget&, const Progress&)>;

}  // namespace braid
