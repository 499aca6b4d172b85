#include "braid/planners/amp_placement_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "braid/planners/amp_assignment.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds are compared with costs summed in another order.
constexpr double kRounding = 1 - 1e-12;

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

/// The first stages of a strategy on their nodes.
struct Partial {
  double bound_s = 0;
  std::size_t degrees = 0;                       ///< Index into the strategies.
  std::vector<std::vector<std::size_t>> stages;  ///< [stage][replica]: node.
};

struct Later {
  bool operator()(const Partial& a, const Partial& b) const {
    if (a.bound_s != b.bound_s) return a.bound_s > b.bound_s;
    if (a.stages.size() != b.stages.size()) return a.stages.size() < b.stages.size();
    if (a.degrees != b.degrees) return a.degrees > b.degrees;
    return a.stages > b.stages;
  }
};

class PlacementSearch {
 public:
  PlacementSearch(const AmpModel& model, const AmpCluster& cluster,
                  std::span<const AmpStrategy> degrees, std::int64_t global_batch,
                  const AmpRules& rules)
      : model_(model),
        cluster_(cluster),
        degrees_(degrees),
        global_batch_(global_batch),
        nodes_(nodes_of(cluster)) {
    objective_.physical = false;
    objective_.rules = rules;
    objective_.rules.average_devices = false;
    double table = 0;
    for (const AmpLayer& layer : model.layers) {
      parameters_ += layer.parameters;
      table = std::max(table, layer.embedding_parameters);
    }
    parameters_ += table;
  }

  AmpPlacementResult run(std::int64_t most_states) {
    for (std::size_t d = 0; d < degrees_.size(); ++d) {
      AmpStrategy strategy = degrees_[d];
      strategy.device = rank_order(cluster_);
      keep(amp_evaluate(model_, cluster_, strategy, global_batch_, objective_));
      Partial root{0, d, {}};
      push(std::move(root));
    }
    while (!open_.empty()) {
      const Partial partial = open_.top();
      if (!(partial.bound_s < cost_s())) break;
      if (result_.states >= most_states) break;
      open_.pop();
      if (partial.stages.size() == static_cast<std::size_t>(degrees_[partial.degrees].pp)) {
        keep(amp_evaluate(model_, cluster_, on_devices(partial), global_batch_, objective_));
        continue;
      }
      extend(partial);
    }
    result_.bound_s = open_.empty() ? cost_s() : std::min(cost_s(), open_.top().bound_s);
    return result_;
  }

 private:
  double cost_s() const { return result_.best.has_value() ? result_.best->cost_s : kInfinity; }
  void keep(std::optional<AmpChoice> choice) {
    if (choice.has_value() && choice->cost_s < cost_s()) result_.best = std::move(choice);
  }
  void push(Partial partial) {
    ++result_.states;
    partial.bound_s = std::max(partial.bound_s, bound_s(partial) * kRounding);
    if (partial.bound_s < cost_s()) open_.push(std::move(partial));
  }

  /// Room for replicas left in each node.
  std::vector<std::int32_t> room(const Partial& partial) const {
    std::vector<std::int32_t> left;
    for (const auto& devices : nodes_.devices) {
      left.push_back(static_cast<std::int32_t>(devices.size()) / degrees_[partial.degrees].tp);
    }
    for (const auto& stage : partial.stages) {
      for (const std::size_t node : stage) --left[node];
    }
    return left;
  }

  /// All next stages that differ.
  void extend(const Partial& partial) {
    const auto replicas = static_cast<std::size_t>(degrees_[partial.degrees].dp);
    std::vector<std::int32_t> left = room(partial);
    std::vector<bool> used(left.size(), false);
    for (const auto& stage : partial.stages) {
      for (const std::size_t node : stage) used[node] = true;
    }
    std::vector<std::size_t> stage;
    choose(partial, replicas, left, used, stage);
  }

  void choose(const Partial& partial, std::size_t replicas, std::vector<std::int32_t>& left,
              std::vector<bool>& used, std::vector<std::size_t>& stage) {
    if (stage.size() == replicas) {
      Partial next = partial;
      next.stages.push_back(stage);
      push(std::move(next));
      return;
    }
    const std::size_t replica = stage.size();
    const bool like_last =
        replica > 0 && std::all_of(partial.stages.begin(), partial.stages.end(),
                                   [&](const auto& s) { return s[replica] == s[replica - 1]; });
    std::vector<std::size_t> fresh;  // Kinds of unused nodes tried here.
    for (std::size_t node = like_last ? stage.back() : 0; node < left.size(); ++node) {
      if (left[node] == 0) continue;
      const bool opens = !used[node];
      if (opens) {
        const std::size_t kind = nodes_.first_alike[node];
        if (std::find(fresh.begin(), fresh.end(), kind) != fresh.end()) continue;
        fresh.push_back(kind);
      }
      used[node] = true;
      --left[node];
      stage.push_back(node);
      choose(partial, replicas, left, used, stage);
      stage.pop_back();
      ++left[node];
      if (opens) used[node] = false;
    }
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

  double bound_s(const Partial& partial) {
    const AmpStrategy& strategy = degrees_[partial.degrees];
    const std::vector<std::int32_t> left = room(partial);
    std::uint64_t free_types = 0;
    for (std::size_t node = 0; node < left.size(); ++node) {
      if (left[node] > 0) free_types |= std::uint64_t{1} << nodes_.type[node];
    }
    AssignmentChain chain;
    chain.micro_batches = strategy.micro_batches(global_batch_);
    std::vector<double> s_per_byte;
    const double ring_bytes = 2.0 * (strategy.dp - 1) / strategy.dp * parameters_ / strategy.tp *
                              objective_.rules.gradient_element_bytes;
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
      const double bytes = layer.output_elements * objective_.rules.activation_element_bytes *
                           strategy.micro_batch / (layer.output_split ? strategy.tp : 1);
      for (const double time : s_per_byte) chain.boundary_s.push_back(bytes * time);
    }
    const auto assignment = assign_layers(chain);
    if (!assignment.has_value()) return kInfinity;
    return assignment->pipeline_s + (ring_bytes > 0 ? 1 / parts_per_s : 0);
  }

  AmpStrategy on_devices(const Partial& partial) const {
    AmpStrategy strategy = degrees_[partial.degrees];
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
  std::int64_t global_batch_;
  Nodes nodes_;
  AmpObjective objective_;
  double parameters_ = 0;
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint64_t, bool>, std::vector<double>> sums_;
  std::priority_queue<Partial, std::vector<Partial>, Later> open_;
  AmpPlacementResult result_;
};

}  // namespace

AmpPlacementResult amp_place(const AmpModel& model, const AmpCluster& cluster,
                             std::span<const AmpStrategy> degrees, std::int64_t global_batch,
                             const AmpRules& rules, const AmpPlacementOptions& options) {
  return PlacementSearch(model, cluster, degrees, global_batch, rules).run(options.most_states);
}

}  // namespace braid
