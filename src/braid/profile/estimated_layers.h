#pragma once

#include <memory>
#include <vector>

#include "braid/profile/layer_options.h"
#include "braid/profile/layer_work.h"

namespace braid {

/// The layers of a graph with what the estimator says that they cost (estimate_layer): on a
/// dataflow chip by the best mapping of their kernels, sharded as the graph says or also as a
/// search found best. Cost: linear in the graph; then that of what is asked for.
class EstimatedLayers : public LayerOptions {
 public:
  /// Keeps a reference to `graph`. `nests` (may be null): mappings of other jobs.
  explicit EstimatedLayers(const Graph& graph, ShardingSource sharding = ShardingSource::manual,
                           std::shared_ptr<NestMemo> nests = nullptr);

  const Profile& layers() const override { return layers_; }
  double parameters() const override { return static_cast<double>(parameter_count(graph_)); }
  SplitLimits limits(std::int64_t most_tp) const override;
  bool searches_shardings() const override { return sharding_ == ShardingSource::automatic; }
  /// On dataflow chips.
  std::unique_ptr<LayerOptions> with_rough_times(const System& system) const override;
  std::unique_ptr<LayerCosts> on(const System& system, const Precision& precision) const override;

  bool maps_kernels() const { return maps_kernels_; }
  const Graph& graph() const { return graph_; }
  const std::shared_ptr<NestMemo>& nests() const { return nests_; }
  LayerId first_of_kind(std::size_t kind) const { return first_of_kind_[kind]; }
  const std::vector<OperatorWork>& work_of_kind(std::size_t kind) const {
    return work_of_kind_[kind];
  }

 private:
  const Graph& graph_;
  ShardingSource sharding_;
  std::shared_ptr<NestMemo> nests_;
  bool maps_kernels_ = true;  ///< On dataflow chips.
  Profile layers_;
  std::vector<LayerId> first_of_kind_;
  std::vector<std::vector<OperatorWork>> work_of_kind_;
};

}  // namespace braid
