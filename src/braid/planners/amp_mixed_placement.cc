#include "braid/planners/amp_mixed_placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "braid/planners/placement_search.h"
#include "braid/system/links.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds are compared with costs summed in another order.
constexpr double kRounding = 1 - 1e-12;
/// Groups whose orders are all tried.
constexpr std::size_t kMostOrdered = 4;
/// Entries of a table of assign_layers_and_types beyond which it is not asked.
constexpr double kMostTyped = 2e6;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Links between nodes, those of a node to itself being the best inside.
class NodeLinks {
 public:
  explicit NodeLinks(const AmpMixedJob& job) : job_(job), system_(job.mixed().system()) {
    const auto& nodes = job.nodes();
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        double rate = 0;
        for (const std::int64_t to : others(a, b)) {
          rate = std::max(rate, link_bytes_per_s(system_, nodes[a].front(), to));
        }
        rate_.push_back(rate > 0 ? rate : kInfinity);  // A node of one device.
        if (rate <= 0) continue;
        (a == b ? fastest_inside_ : fastest_between_) =
            std::max(a == b ? fastest_inside_ : fastest_between_, rate);
      }
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      std::size_t first = 0;
      while (first < node && (first_alike_[first] != first || !alike(first, node))) ++first;
      first_alike_.push_back(first);
    }
  }

  double rate(std::size_t a, std::size_t b) const { return rate_[a * job_.nodes().size() + b]; }
  /// The fastest that a ring's slowest link can be.
  double fastest_ring(bool inside) const {
    return inside ? std::max(fastest_inside_, fastest_between_) : fastest_between_;
  }
  const std::vector<std::size_t>& first_alike() const { return first_alike_; }

  /// A message from node to node while nothing else runs, at the least.
  double message_s(double bytes, std::size_t a, std::size_t b) {
    return messages(bytes).s[a * job_.nodes().size() + b];
  }
  double fastest_message_s(double bytes) { return messages(bytes).least_s; }

 private:
  struct Messages {
    std::vector<double> s;
    double least_s = kInfinity;
  };

  std::vector<std::int64_t> others(std::size_t a, std::size_t b) const {
    const auto& nodes = job_.nodes();
    if (a != b) return {nodes[b].front()};
    return {nodes[a].begin() + 1, nodes[a].end()};
  }
  const Messages& messages(double bytes) {
    const auto [found, fresh] = messages_.try_emplace(bytes);
    Messages& messages = found->second;
    if (!fresh) return messages;
    const auto& nodes = job_.nodes();
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        double least_s = kInfinity;
        for (const std::int64_t to : others(a, b)) {
          least_s = std::min(
              least_s, bytes > 0 ? braid::message_s(system_, nodes[a].front(), to, bytes) : 0);
        }
        messages.s.push_back(least_s);
        messages.least_s = std::min(messages.least_s, least_s);
      }
    }
    return messages;
  }
  /// Whether the two nodes may be swapped.
  bool alike(std::size_t a, std::size_t b) const {
    const auto& nodes = job_.nodes();
    if (nodes[a].size() != nodes[b].size() || group(a) != group(b)) return false;
    if (!system_.bandwidth_matrix.empty() && nodes[a].size() > 1) return false;
    const auto same = [&](std::int64_t x, std::int64_t y, std::int64_t u, std::int64_t v) {
      return link_bytes_per_s(system_, x, y) == link_bytes_per_s(system_, u, v) &&
             link_latency_s(system_, x, y) == link_latency_s(system_, u, v);
    };
    const std::int64_t first = nodes[a].front(), second = nodes[b].front();
    if (!same(first, second, second, first)) return false;
    for (std::size_t c = 0; c < nodes.size(); ++c) {
      const std::int64_t other = nodes[c].front();
      if (c == a || c == b) continue;
      if (!same(first, other, second, other) || !same(other, first, other, second)) return false;
      // Flows to it share the same uplinks.
      if (system_.bandwidth_matrix.empty() &&
          level_between(system_, first, other) != level_between(system_, second, other)) {
        return false;
      }
    }
    return true;
  }
  std::size_t group(std::size_t node) const {
    return placement_of(system_, job_.nodes()[node].front()).group;
  }

  const AmpMixedJob& job_;
  const System& system_;
  std::vector<double> rate_;
  double fastest_inside_ = 0, fastest_between_ = 0;
  std::vector<std::size_t> first_alike_;
  std::map<double, Messages> messages_;
};

class AmpMixedPlacement : public PlacementCosts {
 public:
  explicit AmpMixedPlacement(AmpMixedJob& job) : job_(job), links_(job) {
    for (const auto& devices : job.nodes()) {
      group_.push_back(placement_of(job.mixed().system(), devices.front()).group);
    }
    for (const Configuration& configuration : job.configurations()) {
      PlacementShape& shape = shapes_.emplace_back();
      shape.stages = configuration.pp;
      shape.replicas = configuration.dp;
      for (const auto& devices : job.nodes()) {
        shape.room.push_back(static_cast<std::int32_t>(devices.size() / at(configuration.tp)));
      }
    }
    found_.resize(shapes_.size());
  }

  AmpMixedPlacements run(std::int64_t most_states, const SearchProgress& progress) {
    std::vector<std::pair<double, std::size_t>> by_bound;
    for (std::size_t c = 0; c < shapes_.size(); ++c) {
      roots_.push_back(whole(c));
      by_bound.emplace_back(roots_.back().bound_s, c);
    }
    std::sort(by_bound.begin(), by_bound.end());
    for (const auto& [bound, c] : by_bound) {
      if (!(bound < best_s_)) continue;
      if (progress) progress(best_s_, by_bound.front().first, 0);
      try_orders(c);
    }
    PlacementSearchOptions options;
    options.first_alike = links_.first_alike();
    options.best_s = best_s_;
    options.most_states = most_states;
    options.progress = progress;
    const PlacementSearchResult searched = search_placements(shapes_, options, *this);
    AmpMixedPlacements placements;
    placements.states = searched.states;
    placements.bound_s = searched.bound_s;
    for (std::optional<AmpMixedFound>& found : found_) {
      if (found.has_value()) placements.found.push_back(std::move(*found));
    }
    return placements;
  }

  double bound_s(const PartialPlacement& partial) override {
    return partial.stages.empty() ? roots_[partial.shape].bound_s : part_bound_s(partial);
  }

  double complete_s(const PartialPlacement& placement) override {
    std::vector<std::int64_t> devices;
    std::vector<std::size_t> next(job_.nodes().size(), 0);
    const Configuration& configuration = job_.configurations()[placement.shape];
    for (const auto& stage : placement.stages) {
      for (const std::size_t node : stage) {
        for (std::int32_t shard = 0; shard < configuration.tp; ++shard) {
          devices.push_back(job_.nodes()[node][next[node]++]);
        }
      }
    }
    return try_devices(placement.shape, devices);
  }

 private:
  /// A configuration before anything is placed.
  struct Whole {
    double bound_s = 0;
    std::vector<std::size_t> groups;  ///< In the best order of stages' paces; may be empty.
  };

  double try_devices(std::size_t c, std::span<const std::int64_t> devices) {
    const Configuration& configuration = job_.configurations()[c];
    auto found = job_.evaluate(configuration, AmpMixedJob::placement_of(configuration, devices));
    if (!found.has_value()) return kInfinity;
    const double cost_s = found->cost_s;
    best_s_ = std::min(best_s_, cost_s);
    if (!found_[c].has_value() || cost_s < found_[c]->cost_s) found_[c] = std::move(found);
    return cost_s;
  }

  void try_orders(std::size_t c) {
    const Configuration& configuration = job_.configurations()[c];
    const std::size_t groups = group_.back() + 1;
    std::vector<std::size_t> order(groups);
    std::iota(order.begin(), order.end(), 0);
    do {
      std::vector<std::int64_t> devices;
      for (const std::size_t group : order) append_group(group, devices);
      try_devices(c, devices);
    } while (groups <= kMostOrdered && std::next_permutation(order.begin(), order.end()));
    if (roots_[c].groups.empty()) return;
    // Stage after stage from the group that the best order of paces has there, while it lasts.
    std::vector<std::vector<std::int64_t>> left(groups);
    for (std::size_t group = 0; group < groups; ++group) {
      append_group(group, left[group]);
      std::reverse(left[group].begin(), left[group].end());
    }
    std::vector<std::int64_t> devices;
    for (const std::size_t wanted : roots_[c].groups) {
      for (std::int32_t replica = 0; replica < configuration.dp; ++replica) {
        std::size_t group = wanted;
        for (std::size_t g = 0; left[group].empty(); ++g) group = g;
        for (std::int32_t shard = 0; shard < configuration.tp; ++shard) {
          devices.push_back(left[group].back());
          left[group].pop_back();
        }
      }
    }
    try_devices(c, devices);
  }

  void append_group(std::size_t group, std::vector<std::int64_t>& devices) const {
    for (std::size_t node = 0; node < group_.size(); ++node) {
      if (group_[node] != group) continue;
      devices.insert(devices.end(), job_.nodes()[node].begin(), job_.nodes()[node].end());
    }
  }

  /// Time per layer on the fastest of some groups, in the largest memory of theirs.
  AmpMixedJob::StageTable& fastest(std::size_t c, const std::vector<std::size_t>& groups) {
    const auto [found, fresh] = fastest_.try_emplace({c, groups});
    AmpMixedJob::StageTable& best = found->second;
    if (!fresh) return best;
    const Configuration& configuration = job_.configurations()[c];
    std::vector<double> times_s(job_.layers(), kInfinity);
    for (const std::size_t group : groups) {
      const std::size_t one[] = {group};
      const AmpMixedJob::StageTable& table = job_.table(configuration, one);
      if (best.layers.empty()) {
        best.layers = table.layers;
        best.memory = table.memory;
        best.parameters = table.parameters;
      }
      best.memory.available_bytes =
          std::max(best.memory.available_bytes, table.memory.available_bytes);
      for (std::size_t l = 0; l < times_s.size(); ++l) {
        times_s[l] = std::min(times_s[l], table.layers[l].time_s());
        // Layers need the same memory on all chips, but for what the estimator may round.
        ChainLayer& layer = best.layers[l];
        layer.stash_bytes = std::min(layer.stash_bytes, table.layers[l].stash_bytes);
        layer.working_bytes = std::min(layer.working_bytes, table.layers[l].working_bytes);
      }
    }
    best.time_before_s = running_sums(times_s);
    return best;
  }

  /// What synchronisation takes at least, when the parameters may lie on the stages as they like.
  double least_sync_s(std::size_t c, double parameters, double rates) const {
    const Configuration& configuration = job_.configurations()[c];
    if (configuration.dp == 1) return 0;
    return parameters * job_.ring_bytes_per_parameter(configuration) / rates;
  }
  double fastest_ring(const Configuration& configuration) const {
    std::size_t largest = 0;
    for (const auto& devices : job_.nodes()) largest = std::max(largest, devices.size());
    return links_.fastest_ring(at(std::int64_t{configuration.dp} * configuration.tp) <= largest);
  }

  /// Boundary times of one hop by class of cut, into those of all cuts.
  void fill_boundaries(const std::vector<std::vector<double>>& hop_s,
                       std::vector<double>& boundary_s) const {
    for (std::size_t l = 0; l + 1 < job_.layers(); ++l) {
      for (const std::vector<double>& by_class : hop_s) {
        boundary_s.push_back(by_class[job_.cut_class()[l]]);
      }
    }
  }
  std::vector<double> fastest_hop_s(const Configuration& configuration) {
    std::vector<double> hop_s;
    for (const double bytes : job_.handover_bytes(configuration)) {
      hop_s.push_back(links_.fastest_message_s(bytes));
    }
    return hop_s;
  }

  Whole whole(std::size_t c);
  double part_bound_s(const PartialPlacement& partial);

  AmpMixedJob& job_;
  NodeLinks links_;
  std::vector<std::size_t> group_;  ///< [node]
  std::vector<PlacementShape> shapes_;
  std::vector<Whole> roots_;
  double best_s_ = kInfinity;
  std::vector<std::optional<AmpMixedFound>> found_;  ///< [configuration]
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, AmpMixedJob::StageTable> fastest_;
};

AmpMixedPlacement::Whole AmpMixedPlacement::whole(std::size_t c) {
  const Configuration& configuration = job_.configurations()[c];
  // Groups by pace. No more stages can be as fast as the k fastest groups than these have room for,
  // and a stage that is faster than another on every layer may stand for it; so what a stage of the
  // k-th pace takes is at least what the fastest of the k-th and slower groups do.
  std::vector<std::pair<double, std::size_t>> by_pace;
  std::vector<std::int64_t> room(group_.back() + 1, 0);
  for (std::size_t node = 0; node < group_.size(); ++node) {
    room[group_[node]] += shapes_[c].room[node];
  }
  for (std::size_t group = 0; group < room.size(); ++group) {
    const std::size_t one[] = {group};
    by_pace.emplace_back(job_.table(configuration, one).time_before_s.back(), group);
  }
  std::sort(by_pace.begin(), by_pace.end());
  std::vector<std::size_t> all(room.size());
  std::iota(all.begin(), all.end(), 0);
  AmpMixedJob::StageTable& best = fastest(c, all);
  const double sync_s =
      least_sync_s(c, best.parameters, configuration.pp * fastest_ring(configuration));

  TypedChain chain;
  chain.stages = configuration.pp;
  chain.micro_batches = configuration.num_micro_batches;
  double size = static_cast<double>(job_.layers() * room.size() * room.size());
  std::int64_t before = 0, stages_before = 0;
  std::vector<std::size_t> group_of_type;
  for (std::size_t k = 0; k < by_pace.size(); ++k) {
    std::vector<std::size_t> slower;
    for (std::size_t j = k; j < by_pace.size(); ++j) slower.push_back(by_pace[j].second);
    std::sort(slower.begin(), slower.end());
    before += room[by_pace[k].second];
    const bool last = k + 1 == by_pace.size();
    const std::int64_t stages_so_far = last ? configuration.pp : before / configuration.dp;
    StageType type;
    type.count = static_cast<std::int32_t>(stages_so_far - stages_before);
    stages_before = stages_so_far;
    if (type.count == 0) continue;
    size *= type.count + 1;
    AmpMixedJob::StageTable& table = fastest(c, slower);
    type.time_before_s = table.time_before_s;
    for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
      const auto first =
          AmpMixedJob::first_allowed(best, AmpMixedJob::in_flight(configuration, stage));
      type.first_allowed.emplace_back(first.begin(), first.end());
    }
    group_of_type.push_back(by_pace[k].second);
    chain.types.push_back(std::move(type));
  }
  const std::vector<double> hop_s = fastest_hop_s(configuration);
  chain.s_per_byte.assign(chain.types.size() * chain.types.size(), 1);
  for (std::size_t l = 0; l + 1 < job_.layers(); ++l) {
    chain.boundary_bytes.push_back(hop_s[job_.cut_class()[l]]);
  }
  Whole whole;
  if (size > kMostTyped) {
    whole.bound_s = part_bound_s({0, c, {}});
    return whole;
  }
  const auto assignment = assign_layers_and_types(chain);
  if (!assignment.has_value()) {
    whole.bound_s = kInfinity;
    return whole;
  }
  whole.bound_s = assignment->pipeline_s * kRounding + sync_s;
  for (const std::int32_t type : assignment->type) {
    whole.groups.push_back(group_of_type[at(type)]);
  }
  return whole;
}

double AmpMixedPlacement::part_bound_s(const PartialPlacement& partial) {
  const Configuration& configuration = job_.configurations()[partial.shape];
  const std::vector<std::int32_t> left = room_left(shapes_[partial.shape], partial);
  std::vector<std::size_t> free_groups;
  for (std::size_t node = 0; node < left.size(); ++node) {
    if (left[node] > 0 && (free_groups.empty() || free_groups.back() != group_[node])) {
      free_groups.push_back(group_[node]);
    }
  }
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  double rates = 0, parameters = 0;
  std::vector<std::vector<double>> hop_s;
  const std::vector<double> bytes = job_.handover_bytes(configuration);
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    const bool placed = at(stage) < partial.stages.size();
    double ring = fastest_ring(configuration);
    AmpMixedJob::StageTable* table = nullptr;
    if (placed) {
      const auto& nodes = partial.stages[at(stage)];
      std::vector<std::size_t> groups;
      for (std::size_t r = 0; r < nodes.size(); ++r) {
        groups.push_back(group_[nodes[r]]);
        ring = std::min(ring, links_.rate(nodes[r], nodes[(r + 1) % nodes.size()]));
      }
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      table = &job_.table(configuration, groups);
    } else {
      table = &fastest(partial.shape, free_groups);
    }
    parameters = table->parameters;
    rates += ring;
    chain.stages.push_back(
        {table->time_before_s,
         AmpMixedJob::first_allowed(*table, AmpMixedJob::in_flight(configuration, stage))});
    if (stage + 1 == configuration.pp) break;
    std::vector<double>& hop = hop_s.emplace_back();
    const bool both = at(stage) + 1 < partial.stages.size();
    for (const double of_class : bytes) {
      double slowest_s = both ? 0 : links_.fastest_message_s(of_class);
      for (std::size_t r = 0; both && r < at(configuration.dp); ++r) {
        slowest_s = std::max(slowest_s, links_.message_s(of_class, partial.stages[at(stage)][r],
                                                         partial.stages[at(stage) + 1][r]));
      }
      hop.push_back(slowest_s);
    }
  }
  fill_boundaries(hop_s, chain.boundary_s);
  const auto assignment = assign_layers(chain);
  if (!assignment.has_value()) return kInfinity;
  return assignment->pipeline_s + least_sync_s(partial.shape, parameters, rates);
}

}  // namespace

AmpMixedPlacements place_amp_mixed(AmpMixedJob& job, std::int64_t most_states,
                                   const SearchProgress& progress) {
  return AmpMixedPlacement(job).run(most_states, progress);
}

}  // namespace braid
