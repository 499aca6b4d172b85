#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/amp/graph_assignment.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/space.h"
#include "braid/planners/uniform/assess.h"
#include "braid/search/model_cuts.h"

namespace braid {

/// A configuration with its layers assigned and what AMP's model says it costs.
struct AmpAssignment {
  Configuration configuration;
  std::vector<std::vector<std::int32_t>> stages;  ///< Layers, ascending.
  double cost_s = 0;
};

/// Parameters of a layer whose gradients replicas sum; stated bytes of gradients as elements.
double synced_parameters(const ChainLayer& layer, const Precision& precision);
/// Bytes that each replica's link carries for a parameter in the ring all-reduce of the gradients
/// over `dp` of them.
double ring_bytes_per_parameter(std::int64_t dp, const Precision& precision);

/// What of the restrictions AMP's space has. Throws Error, naming the planner, for what it has not
/// (context or expert parallelism, interleaving, other schedules).
SpaceOptions amp_space(SpaceOptions space, const std::string& planner);

/// A job as AMP plans it on a homogeneous system: pp, dp, tp and micro-batch size, 1F1B, the
/// gradients' ring all-reduce on its slowest link, layers assigned exactly for the whole cost with
/// the profile's times. Unlike AMP, within memory: replicas share the optimizer's state (ZeRO-1, or
/// what the restrictions say), without and with full recomputation.
///
/// Models whose layers branch are cut as graphs: stages stand in a line (AssignmentGraph), but a
/// stage may be any layers that need nothing from those behind it. Models without ModelCuts are cut
/// in the order of their layers, and the outcome says so.
class AmpJob {
 public:
  static constexpr double kUnlimited = kInfinity;

  /// Keeps references. Throws Error for mixed systems and for restrictions to what AMP does not
  /// have (context parallelism, interleaving …). `planner` is named in messages and plans.
  AmpJob(const Job& job, const System& system, const SpaceOptions& space, std::string planner);

  /// All configurations, recomputation left out unless it is required.
  const std::vector<Configuration>& configurations() const { return configurations_; }
  /// As it is or with full recomputation, where that is allowed, whichever costs less. nullopt when
  /// neither fits, or costs less than `below_s`.
  std::optional<AmpAssignment> evaluate(const Configuration& configuration,
                                        double below_s = kUnlimited);
  /// The same with layers cut in order, at once.
  std::optional<AmpAssignment> evaluate_in_order(const Configuration& configuration);
  /// Whether the model is cut as a graph, so that evaluate() may take long and finds more.
  bool is_graph() const { return cuts_.has_value(); }
  /// The outcome of a search: the plans of the best `space.top` of `found`, at most one for each
  /// configuration, or what came nearest when there are none. `complete`: `found` has all that
  /// there is, so that the best is proven.
  Outcome outcome(std::vector<AmpAssignment> found, std::int64_t work, bool complete);

  // For other planners of the same space.
  const LayerTable& table(const Configuration& configuration) { return tables_.at(configuration); }
  MemoryForm memory(const Configuration& configuration);
  std::size_t layers() const { return chain_.kind_of_layer.size(); }
  const ModelCuts& cuts() const { return *cuts_; }  ///< If is_graph().
  /// The layers as assign_graph() takes them, output bytes being those of a sample.
  AssignmentGraph assignment_graph(const Configuration& configuration);
  const Precision& precision() const { return job_.precision; }
  /// Per sample, of the cut in front of each layer but the first.
  const std::vector<double>& cut_bytes() const { return cut_bytes_; }

 private:
  /// One or both ways of recomputation, by `assign(configuration, below_s)`.
  template <typename Assign>
  std::optional<AmpAssignment> best_way(const Configuration& configuration, double below_s,
                                        Assign assign);
  std::optional<AmpAssignment> assign_in_order(const Configuration& configuration);
  std::optional<AmpAssignment> assign_branches(const Configuration& configuration, double below_s);
  /// No assignment costs less. O(layers).
  double bound_s(const Configuration& configuration);
  /// Of a micro-batch between two stages, for `bytes` of a sample.
  const std::vector<double>& handovers_s(const Configuration& configuration, double bytes);
  /// Of the ring over a stage's replicas.
  double sync_s_per_parameter(const Configuration& configuration) const;
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
};

}  // namespace braid
