#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/search/partition.h"
#include "braid/system/system.h"

namespace braid {

/// A layer as AMP's models see it (Li et al. 2022). Figures are per sample where that applies.
struct AmpLayer {
  double output_elements = 0;  ///< Handed on when the pipeline is cut behind this layer.
  bool output_split = false;   ///< Each tensor-parallel rank has its share of them only.
  double parameters = 0;       ///< Split over the tensor-parallel ranks.
  /// Of a table that all such layers share, split likewise. A stage holds it once.
  double embedding_parameters = 0;
  /// That its forward pass issues to a device, whatever the sizes, as Efficiency::host_operator_s
  /// counts them.
  double operators = 0;
  double activation_bytes = 0;        ///< Kept for the backward pass by each rank.
  double split_activation_bytes = 0;  ///< Kept, split over the tensor-parallel ranks.
};

/// A chain of layers with measured or estimated times.
struct AmpModel {
  std::vector<AmpLayer> layers;
  std::vector<std::int32_t> degrees;  ///< Tensor-parallel degrees that there are times for, rising.
  /// Forward time of one sample: [device type][index of the degree][layer]. All-reduces over the
  /// tensor-parallel ranks are in it.
  std::vector<std::vector<std::vector<double>>> forward_s;

  bool has_degree(std::int32_t tp) const;
  /// Throws Error when there are no times for the degree.
  const std::vector<double>& forward_at(std::int32_t type, std::int32_t tp) const;
};

/// Devices in nodes, any two joined by a link of their own speed.
struct AmpCluster {
  std::vector<std::int32_t> node;        ///< Of each device; nodes in order.
  std::vector<std::int32_t> type;        ///< Of each device.
  std::vector<double> bytes_per_s;       ///< Of one flow, [from · devices + to].
  std::vector<double> node_bytes_per_s;  ///< Of all flows that leave a node together.

  std::int32_t devices() const { return static_cast<std::int32_t>(node.size()); }
  std::int32_t nodes() const { return static_cast<std::int32_t>(node_bytes_per_s.size()); }
  double link(std::int32_t from, std::int32_t to) const {
    return bytes_per_s[static_cast<std::size_t>(from) * node.size() + static_cast<std::size_t>(to)];
  }
};

/// One kind of node in amp_cluster_of().
struct AmpNode {
  std::int32_t count = 1;
  std::int32_t devices = 1;
  std::int32_t type = 0;
  double inside_bytes_per_s = 0;   ///< Between two devices of the node.
  double outside_bytes_per_s = 0;  ///< Of the node's network card.
};
/// Nodes in this order. Between nodes the slower card counts.
AmpCluster amp_cluster_of(std::span<const AmpNode> nodes);
/// The same from a System: links as link_bytes_per_s has them, a node's card is what the
/// first level above the node lets it send, a type for each group. Throws Error for more than 2048
/// devices.
AmpCluster amp_cluster(const System& system);

/// Degrees, micro-batch size and device of each rank, rank = (stage · dp + replica) · tp + shard.
struct AmpStrategy {
  std::int32_t pp = 1, dp = 1, tp = 1;
  std::int32_t micro_batch = 1;
  std::vector<std::int32_t> device;

  std::int32_t at(std::int32_t stage, std::int32_t replica, std::int32_t shard) const {
    const auto ranks = static_cast<std::size_t>(stage) * static_cast<std::size_t>(dp) +
                       static_cast<std::size_t>(replica);
    return device[ranks * static_cast<std::size_t>(tp) + static_cast<std::size_t>(shard)];
  }
  std::int64_t micro_batches(std::int64_t global_batch) const {
    return global_batch / (static_cast<std::int64_t>(dp) * micro_batch);
  }
};

/// Parameters of a rank of a stage with layers [begin, end).
double amp_stage_parameters(const AmpModel& model, std::int32_t tp, std::int32_t begin,
                            std::int32_t end);

}  // namespace braid
