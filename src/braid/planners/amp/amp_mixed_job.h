#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/amp/synced_assignment.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/mixed_job.h"
#include "braid/search/graph_assignment.h"
#include "braid/search/model_cuts.h"
#include "braid/search/partition.h"

namespace braid {

/// A strategy on devices of its own, layers assigned, and what AMP's model says it costs.
struct AmpMixedAssignment {
  std::vector<PlacedStage> stages;
  std::vector<std::int32_t> order;  ///< The layers, stage by stage; empty: as the model has them.
  double cost_s = 0;
};

/// A job as AMP plans it on a mixed system or a bandwidth matrix: one pp, dp, tp and micro-batch
/// size over all devices, 1F1B, each stage on any devices whose shard groups lie inside nodes and
/// as fast as its slowest, ring all-reduce of the gradients on the slowest link of each stage's
/// ring, layers assigned exactly for the whole cost. Unlike AMP, within memory: replicas share the
/// optimizer's state (ZeRO-1, or what the restrictions say), with and without full recomputation.
///
/// Models whose layers branch are cut as graphs, as OneFormJob cuts them, where they have
/// ModelCuts.
class AmpMixedJob {
 public:
  static constexpr double kUnlimited = kInfinity;
  /// Devices of the stages, ascending, each `tp` neighbours a shard group.
  using Placement = std::vector<std::vector<std::int64_t>>;

  /// Keeps references. Throws Error for restrictions to what AMP does not have and for more than
  /// 2048 devices. `planner` is named in messages and plans.
  AmpMixedJob(const Job& job, const System& system, const SpaceOptions& space, std::string planner);

  const MixedJob& mixed() const { return mixed_; }
  /// Those whose tp divides every node. Recomputation none and full, where both are allowed.
  const std::vector<Configuration>& configurations() const { return configurations_; }
  const std::vector<std::vector<std::int64_t>>& nodes() const { return nodes_; }  ///< Devices.
  std::size_t shown() const;  ///< How many plans are asked for.
  std::size_t layers() const { return cut_class_.size(); }

  /// Layers of a stage on devices in these groups as the assignment sees them.
  struct StageTable {
    std::vector<ChainLayer> layers;
    std::vector<double> times_s, time_before_s;
    double synced_parameters = 0;  ///< Of all layers, on each rank.
    MemoryForm memory;
    std::map<std::int64_t, std::vector<std::int32_t>> first_allowed;  ///< By stashes in flight.
  };
  StageTable& table(const Configuration& configuration, std::span<const std::size_t> groups);
  /// Kept in the table.
  static std::span<const std::int32_t> first_allowed(StageTable& table, std::int64_t in_flight);

  /// Classes of cuts that hand over the same bytes: that of the cut behind each layer (the last
  /// one's does not count), and bytes of each class for every flow of a micro-batch.
  const std::vector<std::size_t>& cut_class() const { return cut_class_; }
  std::vector<double> handover_bytes(const Configuration& configuration) const;

  /// With the layers in order. nullopt when memory allows no assignment.
  std::optional<AmpMixedAssignment> evaluate(const Configuration& configuration,
                                             const Placement& placement);

  /// Whether the model is cut as a graph.
  bool is_graph() const { return cuts_.has_value(); }
  /// With the model cut as a graph: nullopt when no assignment costs less than `below_s`. Adds to
  /// `steps` what it took, as assign_graph() does.
  std::optional<AmpMixedAssignment> evaluate_as_graph(const Configuration& configuration,
                                                      const Placement& placement, double below_s,
                                                      std::int64_t& steps);
  /// Least bytes handed over for each flow of a micro-batch behind so many layers, at [layers].
  std::vector<double> least_handover_bytes(const Configuration& configuration) const;

  /// Stages of the devices in a given order of shard groups.
  static Placement placement_of(const Configuration& configuration,
                                std::span<const std::int64_t> devices);

  /// The plans of the best `top`, or what came nearest in the order of ranks when there are none.
  /// `bound_s`: no strategy costs less; 0: not known.
  Outcome outcome(std::vector<AmpMixedAssignment> found, double bound_s, std::int64_t work);

 private:
  AssignmentGraph assignment_graph(const Configuration& configuration, const Placement& placement);
  std::optional<SyncedAssignment> assign(const Configuration& configuration,
                                         const Placement& placement, double extra_bytes);
  /// What a parameter's gradient takes to synchronise on a stage of these devices.
  double sync_s_per_parameter(const Configuration& configuration,
                              std::span<const std::int64_t> devices) const;
  Infeasibility nearest();

  std::int64_t evaluated_ = 0;
  const Job& job_;
  const System& system_;
  SpaceOptions space_;
  std::string planner_;
  MixedJob mixed_;
  std::vector<std::vector<std::int64_t>> nodes_;
  std::vector<std::size_t> cut_class_;
  std::vector<double> bytes_of_class_;  ///< Per sample.
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
  std::vector<double> output_bytes_;          ///< By layer, per sample.
  std::optional<ModelCuts> cuts_;             ///< If the model branches.
  std::vector<double> least_crossing_bytes_;  ///< By layers before the cut, per sample.
  std::vector<Configuration> configurations_;
  std::map<std::pair<Configuration, std::vector<std::size_t>>, StageTable> tables_;
};

}  // namespace braid
