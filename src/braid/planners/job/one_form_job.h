#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/planners/job/assess.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/space.h"
#include "braid/search/graph_assignment.h"
#include "braid/search/model_cuts.h"

namespace braid {

/// A configuration with its layers assigned and what a planner's own model says it costs.
struct OneFormAssignment {
  Configuration configuration;
  std::vector<std::vector<std::int32_t>> stages;  ///< Layers, ascending.
  double cost_s = 0;
};

/// What a ring over the replicas of a device's experts moves of each of their gradients, of what
/// one over all dp replicas of the stage moves: (1 - ep/dp) / (1 - 1/dp). 1 where experts are not
/// split.
double expert_sync_share(const Configuration& configuration);

/// Parameters of a layer whose gradients replicas sum, as many as all dp replicas of the stage
/// would sum in as long a time: those of experts that are split count for expert_sync_share().
/// Stated bytes of gradients count as elements.
double synced_parameters(const ChainLayer& layer, const Configuration& configuration,
                         const Precision& precision);

/// What of the restrictions the space of a OneFormJob has. Throws Error, naming the planner, for
/// what it has not (context parallelism, whole experts beside tensor parallelism, interleaving,
/// other schedules).
SpaceOptions one_form_space(SpaceOptions space, const std::string& planner);

/// A job on a homogeneous system for planners whose stages have one form and use all devices: pp,
/// dp, tp and micro-batch size, 1F1B, without and with full recomputation, experts whole or split
/// over replicas, these sharing the optimizer's state (ZeRO-1, or what the restrictions say). How
/// layers are assigned, and what that costs, each planner says by itself.
///
/// Models whose layers branch are cut as graphs: stages stand in a line (AssignmentGraph), but a
/// stage may be any layers that need nothing from those behind it. Models without ModelCuts are cut
/// in the order of their layers, and the outcome says so.
class OneFormJob {
 public:
  /// Keeps references. Throws Error for mixed systems and as one_form_space(). `planner` is named
  /// in messages and plans.
  OneFormJob(const Job& job, const System& system, const SpaceOptions& space, std::string planner);

  const Job& job() const { return job_; }
  const System& system() const { return system_; }
  const SpaceOptions& space() const { return space_; }  ///< one_form_space().
  std::size_t layers() const { return chain_.kind_of_layer.size(); }

  /// All configurations that differ in more than the split of experts, of which each has the
  /// least; recomputation is left out unless it is required.
  const std::vector<Configuration>& configurations() const { return configurations_; }
  /// One of configurations() with each split of experts; another as it is.
  std::vector<Configuration> expert_splits(const Configuration& configuration) const;
  const LayerTable& table(const Configuration& configuration) { return tables_.at(configuration); }
  MemoryForm memory(const Configuration& configuration);

  /// Per sample, of the cut in front of each layer but the first.
  const std::vector<double>& cut_bytes() const { return cut_bytes_; }
  /// Of a micro-batch from each stage to the next, for `bytes` of a sample; until the next call.
  const std::vector<double>& handovers_s(const Configuration& configuration, double bytes);

  /// Whether the model is cut as a graph.
  bool is_graph() const { return cuts_.has_value(); }
  const ModelCuts& cuts() const { return *cuts_; }  ///< If is_graph().
  /// The layers' times and memory as assign_graph() takes them, output bytes being those of a
  /// sample; what handing over and synchronising take is left out.
  AssignmentGraph assignment_graph(const Configuration& configuration);

  /// The outcome of a search for what costs least: the plans of the best `top` of `found`, at most
  /// one for each class of configurations (is_same_class()), or what came nearest when there are
  /// none. `complete`: `found` has all that there is, so that the best is proven.
  Outcome outcome(std::vector<OneFormAssignment> found, std::int64_t work, bool complete,
                  std::string objective_name);

 private:
  Infeasibility nearest();

  const Job& job_;
  const System& system_;
  SpaceOptions space_;
  std::string planner_;
  ChainJob chain_;
  LayerTables tables_;
  AssessmentScratch scratch_;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
  std::vector<double> output_bytes_;  ///< By layer, per sample.
  std::vector<double> cut_bytes_;
  std::optional<ModelCuts> cuts_;  ///< If the model branches.
  std::vector<Configuration> configurations_;
  std::map<Configuration, std::vector<Configuration>> expert_splits_;  ///< Of configurations_.
};

}  // namespace braid
