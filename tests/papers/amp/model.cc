#include "papers/amp/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr std::int64_t kMostModelDevices = 2048;

}  // namespace

bool AmpModel::has_degree(std::int32_t tp) const {
  return std::find(degrees.begin(), degrees.end(), tp) != degrees.end();
}

const std::vector<double>& AmpModel::forward_at(std::int32_t type, std::int32_t tp) const {
  const auto at = std::find(degrees.begin(), degrees.end(), tp);
  if (at == degrees.end()) {
    throw Error(fmt::format("there are no layer times for tensor-parallel degree {}", tp),
                "profile the layers at this degree");
  }
  return forward_s[static_cast<std::size_t>(type)][static_cast<std::size_t>(at - degrees.begin())];
}

AmpCluster amp_cluster_of(std::span<const AmpNode> nodes) {
  AmpCluster cluster;
  std::vector<double> inside_bytes_per_s;
  for (const AmpNode& kind : nodes) {
    for (std::int32_t n = 0; n < kind.count; ++n) {
      for (std::int32_t d = 0; d < kind.devices; ++d) {
        cluster.node.push_back(cluster.nodes());
        cluster.type.push_back(kind.type);
      }
      cluster.node_bytes_per_s.push_back(kind.outside_bytes_per_s);
      inside_bytes_per_s.push_back(kind.inside_bytes_per_s);
    }
  }
  for (const std::int32_t from : cluster.node) {
    for (const std::int32_t to : cluster.node) {
      const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
      cluster.bytes_per_s.push_back(
          a == b ? inside_bytes_per_s[a]
                 : std::min(cluster.node_bytes_per_s[a], cluster.node_bytes_per_s[b]));
    }
  }
  return cluster;
}

AmpCluster amp_cluster(const System& system) {
  if (system.device_count > kMostModelDevices) {
    throw Error(fmt::format("AMP's planner compares links between all devices; {} are too many",
                            system.device_count),
                fmt::format("plan for at most {}", kMostModelDevices));
  }
  AmpCluster cluster;
  for (std::int64_t device = 0; device < system.device_count; ++device) {
    const Placement placement = placement_of(system, device);
    cluster.node.push_back(static_cast<std::int32_t>(placement.node));
    cluster.type.push_back(static_cast<std::int32_t>(placement.group));
  }
  double card_bytes_per_s = kInfinity;
  if (!system.levels.empty()) card_bytes_per_s = system.levels.front().unit_bytes_per_s;
  cluster.node_bytes_per_s.assign(static_cast<std::size_t>(cluster.node.back()) + 1,
                                  card_bytes_per_s);
  for (std::int64_t from = 0; from < system.device_count; ++from) {
    for (std::int64_t to = 0; to < system.device_count; ++to) {
      cluster.bytes_per_s.push_back(link_bytes_per_s(system, from, to));
    }
  }
  return cluster;
}

double amp_stage_parameters(const AmpModel& model, std::int32_t tp, std::int32_t begin,
                            std::int32_t end) {
  double parameters = 0, table = 0;
  for (std::int32_t l = begin; l < end; ++l) {
    const AmpLayer& layer = model.layers[static_cast<std::size_t>(l)];
    parameters += layer.parameters;
    table = std::max(table, layer.embedding_parameters);
  }
  return (parameters + table) / tp;
}

}  // namespace braid
