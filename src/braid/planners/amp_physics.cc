#include "braid/planners/amp_physics.h"

#include <algorithm>
#include <compare>
#include <set>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/schedule/pipeline_time.h"

namespace braid {
namespace {

constexpr double kBackwardWork = 2;  ///< Of the forward pass.

struct PassTimes {
  double forward_s = 0, backward_s = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const PassTimes&, const PassTimes&) = default;
};

/// A strategy on its devices.
class RankLayout {
 public:
  RankLayout(const AmpModel& model, const AmpCluster& cluster, const AmpStrategy& strategy,
             std::int64_t global_batch, const AmpPhysics& physics)
      : model_(model),
        cluster_(cluster),
        strategy_(strategy),
        physics_(physics),
        micro_batches_(strategy.micro_batches(global_batch)) {}

  std::int64_t micro_batches() const { return micro_batches_; }
  std::int32_t node(std::int32_t stage, std::int32_t replica, std::int32_t shard) const {
    return cluster_.node[static_cast<std::size_t>(strategy_.at(stage, replica, shard))];
  }

  /// Times of a micro-batch on the slowest shard of a stage's replica.
  PassTimes layer_s(std::size_t layer, std::int32_t stage, std::int32_t replica) const {
    PassTimes longest;
    for (std::int32_t shard = 0; shard < strategy_.tp; ++shard) {
      const auto device = static_cast<std::size_t>(strategy_.at(stage, replica, shard));
      const PassTimes times = layer_s_on(layer, cluster_.type[device]);
      longest.forward_s = std::max(longest.forward_s, times.forward_s);
      longest.backward_s = std::max(longest.backward_s, times.backward_s);
    }
    return longest;
  }
  PassTimes stage_s(const Ends& ends, std::int32_t stage, std::int32_t replica) const {
    PassTimes sum;
    for (std::int32_t l = begin_of(ends, stage); l < ends[static_cast<std::size_t>(stage)]; ++l) {
      const PassTimes times = layer_s(static_cast<std::size_t>(l), stage, replica);
      sum.forward_s += times.forward_s;
      sum.backward_s += times.backward_s;
    }
    return sum;
  }
  static std::int32_t begin_of(const Ends& ends, std::int32_t stage) {
    return stage == 0 ? 0 : ends[static_cast<std::size_t>(stage) - 1];
  }

  /// Seconds per byte of one replica's handover from a stage to another, while all replicas' and
  /// shards' run.
  double handover_s_per_byte(std::int32_t from, std::int32_t to, std::int32_t replica) const {
    std::vector<std::int32_t> leaving(cluster_.node_bytes_per_s.size(), 0);
    for (std::int32_t other = 0; other < strategy_.dp; ++other) {
      for (std::int32_t shard = 0; shard < strategy_.tp; ++shard) {
        const std::int32_t source = node(from, other, shard);
        if (source != node(to, other, shard)) ++leaving[static_cast<std::size_t>(source)];
      }
    }
    double slowest = 0;
    for (std::int32_t shard = 0; shard < strategy_.tp; ++shard) {
      const auto source = static_cast<std::size_t>(node(from, replica, shard));
      double rate =
          cluster_.link(strategy_.at(from, replica, shard), strategy_.at(to, replica, shard));
      if (node(from, replica, shard) != node(to, replica, shard)) {
        rate = std::min(rate, cluster_.node_bytes_per_s[source] / leaving[source]);
      }
      slowest = std::max(slowest, 1 / rate);
    }
    return slowest;
  }
  double handed_bytes(std::int32_t end) const {
    const AmpLayer& layer = model_.layers[static_cast<std::size_t>(end) - 1];
    return layer.output_elements * physics_.activation_element_bytes * strategy_.micro_batch /
           (layer.output_split ? strategy_.tp : 1);
  }

  /// Rings of gradients that cross each node's network card.
  std::vector<std::int32_t> rings_through() const {
    std::vector<std::int32_t> rings(cluster_.node_bytes_per_s.size(), 0);
    for (std::int32_t stage = 0; stage < strategy_.pp; ++stage) {
      for (std::int32_t shard = 0; shard < strategy_.tp; ++shard) {
        std::set<std::int32_t> nodes;
        for (std::int32_t replica = 0; replica < strategy_.dp; ++replica) {
          nodes.insert(node(stage, replica, shard));
        }
        if (nodes.size() < 2) continue;
        for (const std::int32_t n : nodes) ++rings[static_cast<std::size_t>(n)];
      }
    }
    return rings;
  }
  /// Seconds per byte of the slowest of a stage's rings.
  double ring_s_per_byte(std::int32_t stage, const std::vector<std::int32_t>& rings) const {
    double slowest = 0;
    for (std::int32_t shard = 0; shard < strategy_.tp; ++shard) {
      for (std::int32_t replica = 0; replica < strategy_.dp; ++replica) {
        const std::int32_t next = (replica + 1) % strategy_.dp;
        double rate =
            cluster_.link(strategy_.at(stage, replica, shard), strategy_.at(stage, next, shard));
        const auto source = static_cast<std::size_t>(node(stage, replica, shard));
        if (node(stage, replica, shard) != node(stage, next, shard)) {
          rate = std::min(rate, cluster_.node_bytes_per_s[source] / rings[source]);
        }
        slowest = std::max(slowest, 1 / rate);
      }
    }
    return slowest;
  }
  double sync_s(const Ends& ends, std::int32_t stage,
                const std::vector<std::int32_t>& rings) const {
    if (strategy_.dp == 1) return 0;
    const double bytes = amp_stage_parameters(model_, strategy_.tp, begin_of(ends, stage),
                                              ends[static_cast<std::size_t>(stage)]) *
                         physics_.gradient_element_bytes;
    return 2.0 * (strategy_.dp - 1) / strategy_.dp * bytes * ring_s_per_byte(stage, rings);
  }

  /// Reduction of a table held by the first and the last stage.
  double shared_table_s(const Ends& ends) const {
    if (strategy_.pp == 1) return 0;
    const auto table = [&](std::int32_t stage) {
      double parameters = 0;
      for (std::int32_t l = begin_of(ends, stage); l < ends[static_cast<std::size_t>(stage)]; ++l) {
        parameters =
            std::max(parameters, model_.layers[static_cast<std::size_t>(l)].embedding_parameters);
      }
      return parameters;
    };
    const std::int32_t last = strategy_.pp - 1;
    const double bytes =
        std::min(table(0), table(last)) / strategy_.tp * physics_.shared_table_element_bytes;
    double longest_s = 0;
    for (std::int32_t replica = 0; replica < strategy_.dp; ++replica) {
      longest_s = std::max(longest_s, bytes * handover_s_per_byte(0, last, replica));
    }
    return longest_s;
  }

  /// Memory of a layer on a device of a stage.
  double layer_bytes(std::size_t layer, std::int32_t stage) const {
    const AmpLayer& values = model_.layers[layer];
    const auto in_flight =
        static_cast<double>(std::min<std::int64_t>(micro_batches_, strategy_.pp - stage));
    return physics_.state_bytes_per_parameter * (values.parameters + values.embedding_parameters) /
               strategy_.tp +
           in_flight * strategy_.micro_batch *
               (values.activation_bytes + values.split_activation_bytes / strategy_.tp);
  }
  /// Of the stage's device that has least.
  double available_bytes(std::int32_t stage) const {
    double least = kInfinity;
    for (std::int32_t rank = 0; rank < strategy_.dp * strategy_.tp; ++rank) {
      const auto device = static_cast<std::size_t>(strategy_.at(stage, 0, rank));
      least =
          std::min(least, cluster_.memory_bytes[static_cast<std::size_t>(cluster_.type[device])]);
    }
    return least;
  }

 private:
  PassTimes layer_s_on(std::size_t layer, std::int32_t type) const {
    const double sample_s = model_.forward_at(type, strategy_.tp)[layer];
    double issue_s = std::min(sample_s, issue_s_on(layer, type));
    double work_s = sample_s - issue_s, communication_s = 0;
    if (strategy_.tp > 1 && model_.has_degree(1)) {
      const double whole_s = model_.forward_at(type, 1)[layer];
      issue_s = std::min(issue_s, whole_s);
      work_s = std::min(sample_s - issue_s, (whole_s - issue_s) / strategy_.tp);
      communication_s = sample_s - issue_s - work_s;
    }
    const double samples = strategy_.micro_batch;
    work_s *= samples;
    communication_s *= message_growth(layer, type);
    return {issue_s + work_s + communication_s, issue_s + kBackwardWork * work_s + communication_s};
  }
  /// How much longer than a sample's a micro-batch's messages between the shards take.
  double message_growth(std::size_t layer, std::int32_t type) const {
    const double samples = strategy_.micro_batch;
    if (cluster_.half_bytes.empty()) return samples;
    const double half_bytes = cluster_.half_bytes[static_cast<std::size_t>(type)];
    const double bytes =
        model_.layers[layer].output_elements * physics_.activation_element_bytes / strategy_.tp;
    return bytes > 0 ? (bytes * samples + half_bytes) / (bytes + half_bytes) : samples;
  }
  double issue_s_on(std::size_t layer, std::int32_t type) const {
    if (cluster_.operator_s.empty()) return 0;
    return model_.layers[layer].operators * cluster_.operator_s[static_cast<std::size_t>(type)];
  }

  const AmpModel& model_;
  const AmpCluster& cluster_;
  const AmpStrategy& strategy_;
  const AmpPhysics& physics_;
  std::int64_t micro_batches_;
};

/// Times of one replica's pipeline: the stages' passes, transfers between them.
using Replica = std::pair<std::vector<PassTimes>, std::vector<double>>;

Replica replica_of(const RankLayout& layout, const AmpStrategy& strategy, const Ends& ends,
                   std::int32_t replica) {
  Replica made;
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    made.first.push_back(layout.stage_s(ends, stage, replica));
    if (stage + 1 == strategy.pp) break;
    made.second.push_back(layout.handed_bytes(ends[static_cast<std::size_t>(stage)]) *
                          layout.handover_s_per_byte(stage, stage + 1, replica));
  }
  return made;
}

}  // namespace

AmpForecast amp_forecast(const AmpModel& model, const AmpCluster& cluster,
                         const AmpStrategy& strategy, std::int64_t global_batch, const Ends& ends,
                         const AmpPhysics& physics) {
  const RankLayout layout(model, cluster, strategy, global_batch, physics);
  std::set<Replica> replicas;
  for (std::int32_t replica = 0; replica < strategy.dp; ++replica) {
    replicas.insert(replica_of(layout, strategy, ends, replica));
  }
  const auto stages = static_cast<std::size_t>(strategy.pp);
  std::vector<double> passes_end_s(stages, 0);
  PipelineWorkspace workspace;
  for (const auto& [passes, transfer_s] : replicas) {
    Pipeline pipeline;
    pipeline.schedule = ScheduleKind::one_f_one_b;
    pipeline.pp = strategy.pp;
    pipeline.num_micro_batches = layout.micro_batches();
    pipeline.sync.assign(stages, {});
    for (std::size_t i = 0; i < stages; ++i) {
      pipeline.forward_s.push_back(passes[i].forward_s);
      pipeline.backward_s.push_back(passes[i].backward_s);
      const auto at = static_cast<std::int32_t>(i);
      if (i > 0) pipeline.transfers.push_back({at - 1, at, transfer_s[i - 1]});
    }
    pipeline_time_s(pipeline, workspace);
    for (std::size_t i = 0; i < stages; ++i) {
      passes_end_s[i] = std::max(passes_end_s[i], workspace.stages()[i].passes_end_s);
    }
  }
  AmpForecast forecast;
  forecast.missing_bytes = -kInfinity;
  const std::vector<std::int32_t> rings = layout.rings_through();
  const double table_s = layout.shared_table_s(ends);
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    double end_s = passes_end_s[at] + layout.sync_s(ends, stage, rings);
    if (stage == 0 || stage + 1 == strategy.pp) end_s += table_s;
    forecast.iteration_s = std::max(forecast.iteration_s, end_s);
    double bytes = 0;
    for (std::int32_t l = RankLayout::begin_of(ends, stage); l < ends[at]; ++l) {
      bytes += layout.layer_bytes(static_cast<std::size_t>(l), stage);
    }
    forecast.peak_bytes.push_back(bytes);
    forecast.missing_bytes =
        std::max(forecast.missing_bytes, bytes - layout.available_bytes(stage));
  }
  return forecast;
}

AmpPipeline amp_physical_pipeline(const AmpModel& model, const AmpCluster& cluster,
                                  const AmpStrategy& strategy, std::int64_t global_batch,
                                  const AmpPhysics& physics) {
  const RankLayout layout(model, cluster, strategy, global_batch, physics);
  const std::size_t layers = model.layers.size();
  AmpPipeline pipeline;
  pipeline.chain.micro_batches = layout.micro_batches();
  std::vector<double> s_per_byte;
  for (std::int32_t stage = 0; stage < strategy.pp; ++stage) {
    std::vector<double> times_s(layers, 0), bytes(layers);
    for (std::size_t l = 0; l < layers; ++l) {
      for (std::int32_t replica = 0; replica < strategy.dp; ++replica) {
        const PassTimes times = layout.layer_s(l, stage, replica);
        times_s[l] = std::max(times_s[l], times.forward_s + times.backward_s);
      }
      bytes[l] = layout.layer_bytes(l, stage);
    }
    pipeline.time_before_s.push_back(running_sums(times_s));
    pipeline.first_allowed.push_back(first_fitting(bytes, layout.available_bytes(stage)));
    if (stage + 1 == strategy.pp) break;
    double slowest = 0;
    for (std::int32_t replica = 0; replica < strategy.dp; ++replica) {
      slowest = std::max(slowest, layout.handover_s_per_byte(stage, stage + 1, replica));
    }
    s_per_byte.push_back(slowest);
  }
  for (std::size_t stage = 0; stage < pipeline.time_before_s.size(); ++stage) {
    pipeline.chain.stages.push_back({pipeline.time_before_s[stage], pipeline.first_allowed[stage]});
  }
  for (std::size_t l = 1; l < layers; ++l) {
    for (const double time : s_per_byte) {
      pipeline.chain.boundary_s.push_back(layout.handed_bytes(static_cast<std::int32_t>(l)) * time);
    }
  }
  return pipeline;
}

}  // namespace braid
