#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/job.h"
#include "braid/planners/job/layer_table.h"
#include "braid/planners/job/plan_builder.h"
#include "braid/system/part.h"

namespace braid {

/// A stage of a pipeline on devices of its own.
struct PlacedStage {
  std::int32_t begin = 0, end = 0;  ///< Layers, or places in an order of the layers.
  /// Its degrees, micro-batch, memory options; pp, order, schedule and micro-batches do not count.
  Configuration config;
  std::vector<std::int64_t> devices;  ///< Ascending; each tp·cp neighbours are one shard group.
  friend bool operator==(const PlacedStage&, const PlacedStage&) = default;
};

/// A job on a heterogeneous system: layers cost what they cost on each group of the system.
class MixedJob {
 public:
  /// Keeps references. `planner` is named in plans.
  MixedJob(const Job& job, const System& system, std::string planner);

  const Job& job() const { return job_; }
  const System& system() const { return system_; }
  const ChainJob& chain() const { return chain_; }
  const std::vector<DeviceRun>& runs() const { return runs_; }

  /// Layers of a stage of this config with devices in these groups: each as slow as on the slowest.
  /// The `only` stage of a pipeline counts what several layers read once.
  const std::vector<ChainLayer>& layers(const Configuration& config,
                                        std::span<const std::size_t> groups, bool only = false);

  /// Whether the config divides some kind of layer on devices of the group otherwise than configs
  /// that come before it (LayerTables::is_distinct()).
  bool is_distinct(const Configuration& config, std::size_t group) {
    return tables_[group].is_distinct(config);
  }

  /// The plan of flushed 1F1B over these stages, of the layers in this order; empty: the model's.
  Plan plan(std::span<const PlacedStage> stages, std::span<const std::int32_t> order = {});
  /// A plan for other devices on these, number by number, with the layers' costs here.
  Plan on_real_devices(const Plan& planned);
  /// Its iteration time by simulation. Cost: the plan's loads; no other copies.
  double time_s(std::span<const PlacedStage> stages);
  /// Device bytes that the stage that lacks most needs beyond what it has; at most 0: all fit,
  /// their host memory too.
  double missing_bytes(std::span<const PlacedStage> stages,
                       std::span<const std::int32_t> order = {});

 private:
  /// A layer and how it runs.
  struct LayerRun {
    std::int32_t layer = 0;
    Configuration how;
  };

  void fill(std::span<const PlacedStage> stages, std::span<const std::int32_t> order,
            PlanBuilder& builder);
  void add_stage(const PlacedStage& placed, std::span<const LayerRun> layers, bool only,
                 PlanBuilder& builder);
  std::int32_t option_of(const Configuration& config, std::size_t group, bool only,
                         PlanBuilder& builder);
  /// [kind]
  std::vector<LayerCost> costs(const Configuration& config, std::size_t group, bool only);
  std::size_t slowest_group(const Configuration& config, std::int32_t kind,
                            std::span<const std::size_t> groups);

  const Job& job_;
  const System& system_;
  ChainJob chain_;
  std::vector<DeviceRun> runs_;
  std::vector<System> parts_;        ///< [group]
  std::vector<LayerTables> tables_;  ///< [group]
  std::map<std::tuple<RunKey, bool, std::vector<std::size_t>>, std::vector<ChainLayer>> layers_;
  Plan base_;                           ///< Without stages and options.
  std::optional<PlanBuilder> scratch_;  ///< With all options met so far.
  std::vector<LayerRun> runs_of_stage_;
};

}  // namespace braid
