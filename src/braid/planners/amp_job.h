#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/planners/assess.h"
#include "braid/planners/planner.h"
#include "braid/planners/space.h"

namespace braid {

/// A configuration with its layers assigned and what AMP's model says it costs.
struct AmpFound {
  Configuration configuration;
  Ends ends;
  double cost_s = 0;
};

/// What of the restrictions AMP's space has. Throws Error, naming the planner, for what it has not
/// (context or expert parallelism, interleaving, other schedules).
SpaceOptions amp_space(SpaceOptions space, const std::string& planner);

/// A job as AMP plans it on a homogeneous system: pp, dp, tp and micro-batch size, 1F1B, the
/// gradients' ring all-reduce on its slowest link, layers assigned exactly for the whole cost with
/// the profile's times. Unlike AMP, within memory: replicas share the optimizer's state (ZeRO-1, or
/// what the restrictions say), without and with full recomputation.
class AmpJob {
 public:
  /// Keeps references. Throws Error for mixed systems and for restrictions to what AMP does not
  /// have (context parallelism, interleaving …). `planner` is named in messages and plans.
  AmpJob(const Job& job, const System& system, const SpaceOptions& space, std::string planner);

  /// All configurations, recomputation left out unless it is required.
  const std::vector<Configuration>& configurations() const { return configurations_; }
  /// As it is or with full recomputation, where that is allowed, whichever costs less. nullopt when
  /// neither fits.
  std::optional<AmpFound> evaluate(const Configuration& configuration);
  /// The outcome of a search: the plans of the best `space.top` of `found`, at most one for each
  /// configuration, or what came nearest when there are none. `complete`: `found` has all that
  /// there is, so that the best is proven.
  Outcome outcome(std::vector<AmpFound> found, std::int64_t work, bool complete);

  // For other planners of the same space.
  const LayerTable& table(const Configuration& configuration) { return tables_.at(configuration); }
  MemoryForm memory(const Configuration& configuration);
  /// Per sample, of the cut in front of each layer but the first.
  const std::vector<double>& cut_bytes() const { return cut_bytes_; }

 private:
  std::optional<AmpFound> assign(const Configuration& configuration);
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
  std::vector<double> cut_bytes_;
  std::vector<Configuration> configurations_;
};

}  // namespace braid
