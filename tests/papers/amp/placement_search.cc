#include "papers/amp/placement_search.h"

#include <algorithm>
#include <map>

#include "braid/base/infinity.h"
#include "braid/planners/amp/assignment.h"
#include "braid/search/placement_search.h"

namespace braid {
namespace {

/// Nodes of a cluster and what is alike about them.
struct Nodes {
  std::vector<std::vector<std::int32_t>> devices;
  std::vector<std::int32_t> type;
  std::vector<std::vector<double>> link;  ///< Bytes/s of one flow; of a node to itself: inside.
  std::vector<std::size_t> first_alike;   ///< The first node that this one could stand for.
  double fastest_link = 0;
};

bool alike(const Nodes& nodes, std::size_t a, std::size_t b) {
  if (nodes.type[a] != nodes.type[b] || nodes.devices[a].size() != nodes.devices[b].size() ||
      nodes.link[a][a] != nodes.link[b][b] || nodes.link[a][b] != nodes.link[b][a]) {
    return false;
  }
  for (std::size_t c = 0; c < nodes.type.size(); ++c) {
    if (c == a || c == b) continue;
    if (nodes.link[a][c] != nodes.link[b][c] || nodes.link[c][a] != nodes.link[c][b]) return false;
  }
  return true;
}

Nodes nodes_of(const AmpCluster& cluster) {
  Nodes nodes;
  nodes.devices.resize(cluster.node_bytes_per_s.size());
  for (std::int32_t device = 0; device < cluster.devices(); ++device) {
    const auto node = static_cast<std::size_t>(cluster.node[static_cast<std::size_t>(device)]);
    nodes.devices[node].push_back(device);
  }
  for (const auto& own : nodes.devices) {
    nodes.type.push_back(cluster.type[static_cast<std::size_t>(own.front())]);
    std::vector<double> links;
    for (const auto& other : nodes.devices) {
      const bool inside = own.front() == other.front();
      links.push_back(own.size() == 1 && inside
                          ? kInfinity
                          : cluster.link(own.front(), inside ? other[1] : other.front()));
    }
    for (const double link : links) {
      if (link < kInfinity) nodes.fastest_link = std::max(nodes.fastest_link, link);
    }
    nodes.link.push_back(std::move(links));
  }
  for (std::size_t node = 0; node < nodes.type.size(); ++node) {
    std::size_t first = 0;
    while (!alike(nodes, first, node)) ++first;
    nodes.first_alike.push_back(first);
  }
  return nodes;
}

class AmpPlacement : public PlacementCosts {
 public:
  AmpPlacement(const AmpModel& model, const AmpCluster& cluster,
               std::span<const AmpStrategy> degrees, std::int64_t global_batch,
               const AmpRules& rules)
      : model_(model),
        cluster_(cluster),
        degrees_(degrees),
        global_batch_(global_batch),
        nodes_(nodes_of(cluster)) {
    rules_ = rules;
    rules_.average_devices = false;
    double table = 0;
    for (const AmpLayer& layer : model.layers) {
      parameters_ += layer.parameters;
      table = std::max(table, layer.embedding_parameters);
    }
    parameters_ += table;
  }

  AmpPlacementResult run(std::int64_t most_states) {
    std::vector<PlacementShape> shapes;
    shapes.reserve(degrees_.size());
    for (AmpStrategy strategy : degrees_) {
      PlacementShape& shape = shapes.emplace_back();
      shape.stages = strategy.pp;
      shape.replicas = strategy.dp;
      for (const auto& devices : nodes_.devices) {
        shape.capacity.push_back(static_cast<std::int32_t>(devices.size()) / strategy.tp);
      }
      strategy.device = rank_order(cluster_);
      keep(amp_evaluate(model_, cluster_, strategy, global_batch_, rules_));
    }
    shapes_ = shapes;
    PlacementSearchOptions options;
    options.first_alike = nodes_.first_alike;
    options.ordered_replicas = true;
    options.best_s = cost_s();
    options.most_states = most_states;
    const PlacementSearchResult found = search_placements(shapes, options, *this);
    result_.bound_s = found.bound_s;
    result_.states = found.states;
    return result_;
  }

  double complete_s(const PartialPlacement& placement) override {
    auto choice = amp_evaluate(model_, cluster_, on_devices(placement), global_batch_, rules_);
    const double cost = choice.has_value() ? choice->cost_s : kInfinity;
    keep(std::move(choice));
    return cost;
  }

  double bound_s(const PartialPlacement& partial) override {
    const AmpStrategy& strategy = degrees_[partial.shape];
    const std::vector<std::int32_t> left = capacity_left(shapes_[partial.shape], partial);
    std::uint64_t free_types = 0;
    for (std::size_t node = 0; node < left.size(); ++node) {
      if (left[node] > 0) free_types |= std::uint64_t{1} << nodes_.type[node];
    }
    AssignmentChain chain;
    chain.micro_batches = strategy.micro_batches(global_batch_);
    std::vector<double> s_per_byte;
    const double ring_bytes = 2.0 * (strategy.dp - 1) / strategy.dp * parameters_ / strategy.tp *
                              rules_.gradient_element_bytes;
    double parts_per_s = 0;  // Of the parameters, over all stages.
    for (std::size_t stage = 0; stage < static_cast<std::size_t>(strategy.pp); ++stage) {
      const bool placed = stage < partial.stages.size();
      std::uint64_t types = 0;
      double ring = nodes_.fastest_link;
      if (placed) {
        const auto& nodes = partial.stages[stage];
        for (std::size_t r = 0; r < nodes.size(); ++r) {
          types |= std::uint64_t{1} << nodes_.type[nodes[r]];
          ring = std::min(ring, nodes_.link[nodes[r]][nodes[(r + 1) % nodes.size()]]);
        }
      }
      chain.stages.push_back({times_before_s(strategy, placed ? types : free_types, placed), {}});
      if (ring_bytes > 0) parts_per_s += ring / ring_bytes;
      if (stage + 1 == static_cast<std::size_t>(strategy.pp)) break;
      double mean = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(strategy.dp); ++r) {
        const bool both = stage + 1 < partial.stages.size();
        mean += 1 / (both ? nodes_.link[partial.stages[stage][r]][partial.stages[stage + 1][r]]
                          : nodes_.fastest_link);
      }
      s_per_byte.push_back(mean / strategy.dp);
    }
    for (std::size_t l = 0; l + 1 < model_.layers.size(); ++l) {
      const AmpLayer& layer = model_.layers[l];
      const double bytes = layer.output_elements * rules_.activation_element_bytes *
                           strategy.micro_batch / (layer.output_split ? strategy.tp : 1);
      for (const double time : s_per_byte) chain.boundary_s.push_back(bytes * time);
    }
    const auto assignment = assign_layers(chain);
    if (!assignment.has_value()) return kInfinity;
    return assignment->pipeline_s + (ring_bytes > 0 ? 1 / parts_per_s : 0);
  }

 private:
  double cost_s() const { return result_.best.has_value() ? result_.best->cost_s : kInfinity; }
  void keep(std::optional<AmpChoice> choice) {
    if (choice.has_value() && choice->cost_s < cost_s()) result_.best = std::move(choice);
  }

  /// Sums of layer times on a set of types: the slowest of them, or the fastest.
  std::span<const double> times_before_s(const AmpStrategy& strategy, std::uint64_t types,
                                         bool slowest) {
    auto& sums = sums_[{strategy.tp, strategy.micro_batch, types, slowest}];
    if (sums.empty()) {
      std::vector<double> times_s(model_.layers.size(), slowest ? 0 : kInfinity);
      for (std::int32_t type = 0; static_cast<std::size_t>(type) < model_.forward_s.size();
           ++type) {
        if ((types >> type & 1U) == 0) continue;
        const std::vector<double>& forward_s = model_.forward_at(type, strategy.tp);
        for (std::size_t l = 0; l < times_s.size(); ++l) {
          const double time_s = 3 * strategy.micro_batch * forward_s[l];
          times_s[l] = slowest ? std::max(times_s[l], time_s) : std::min(times_s[l], time_s);
        }
      }
      sums = running_sums(times_s);
    }
    return sums;
  }

  AmpStrategy on_devices(const PartialPlacement& partial) const {
    AmpStrategy strategy = degrees_[partial.shape];
    std::vector<std::size_t> next(nodes_.devices.size(), 0);
    for (const auto& stage : partial.stages) {
      for (const std::size_t node : stage) {
        for (std::int32_t shard = 0; shard < strategy.tp; ++shard) {
          strategy.device.push_back(nodes_.devices[node][next[node]++]);
        }
      }
    }
    return strategy;
  }

  const AmpModel& model_;
  const AmpCluster& cluster_;
  std::span<const AmpStrategy> degrees_;
  std::span<const PlacementShape> shapes_;
  std::int64_t global_batch_;
  Nodes nodes_;
  AmpRules rules_;
  double parameters_ = 0;
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint64_t, bool>, std::vector<double>> sums_;
  AmpPlacementResult result_;
};

}  // namespace

AmpPlacementResult amp_place(const AmpModel& model, const AmpCluster& cluster,
                             std::span<const AmpStrategy> degrees, std::int64_t global_batch,
                             const AmpRules& rules, const AmpPlacementOptions& options) {
  return AmpPlacement(model, cluster, degrees, global_batch, rules).run(options.most_states);
}

}  // namespace braid
