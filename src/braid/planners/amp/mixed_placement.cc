#include "braid/planners/amp/mixed_placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/planners/amp/mixed_graph_placement.h"
#include "braid/planners/amp/mixed_parts.h"
#include "braid/planners/job/alternatives.h"

namespace braid {
namespace {

/// Groups whose orders are all tried.
constexpr std::size_t kMostOrdered = 4;
/// Entries of a table of assign_layers_and_types beyond which it is not asked.
constexpr double kMostTyped = 2e6;

class AmpMixedPlacement : public PlacementCosts {
 public:
  explicit AmpMixedPlacement(AmpMixedParts& parts)
      : parts_(parts), job_(parts.job()), found_(parts.shapes().size()) {}

  AmpMixedPlacements run(std::int64_t most_states, const Progress& progress) {
    std::vector<std::pair<double, std::size_t>> by_bound;
    for (std::size_t c = 0; c < parts_.shapes().size(); ++c) {
      roots_.push_back(whole(c));
      by_bound.emplace_back(roots_.back().bound_s, c);
    }
    std::sort(by_bound.begin(), by_bound.end());
    for (const auto& [bound, c] : by_bound) {
      if (!(bound < costs_.kth_least_s(job_.shown()))) continue;
      if (progress) progress(best_s_, by_bound.front().first, 0);
      try_orders(c);
    }
    const PlacementSearchResult searched = parts_.search(*this, best_s_, most_states, progress);
    AmpMixedPlacements placements;
    placements.states = searched.states;
    placements.bound_s = searched.bound_s;
    for (std::optional<AmpMixedAssignment>& found : found_) {
      if (found.has_value()) placements.found.push_back(std::move(*found));
    }
    return placements;
  }

  double bound_s(const PartialPlacement& partial) override {
    return partial.stages.empty() ? roots_[partial.shape].bound_s : part_bound_s(partial);
  }

  double complete_s(const PartialPlacement& placement) override {
    return try_devices(placement.shape, parts_.devices_of(placement));
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
    costs_.add(configuration, cost_s);
    if (!found_[c].has_value() || cost_s < found_[c]->cost_s) found_[c] = std::move(found);
    return cost_s;
  }

  void try_orders(std::size_t c) {
    const Configuration& configuration = job_.configurations()[c];
    const std::size_t groups = parts_.groups();
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
    for (std::size_t node = 0; node < job_.nodes().size(); ++node) {
      if (parts_.group_of_node()[node] != group) continue;
      devices.insert(devices.end(), job_.nodes()[node].begin(), job_.nodes()[node].end());
    }
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
  Whole whole(std::size_t c);
  double part_bound_s(const PartialPlacement& partial);

  AmpMixedParts& parts_;
  AmpMixedJob& job_;
  std::vector<Whole> roots_;
  double best_s_ = kInfinity;
  ClassCosts costs_;
  std::vector<std::optional<AmpMixedAssignment>> found_;  ///< [configuration]
};

AmpMixedPlacement::Whole AmpMixedPlacement::whole(std::size_t c) {
  const Configuration& configuration = job_.configurations()[c];
  const std::vector<AmpMixedParts::Pace> paces = parts_.paces(c);
  std::vector<std::size_t> all(parts_.groups());
  std::iota(all.begin(), all.end(), 0);
  AmpMixedJob::StageTable& best = parts_.fastest(c, all);

  TypedChain chain;
  chain.stages = configuration.pp;
  chain.micro_batches = configuration.num_micro_batches;
  double size = static_cast<double>(job_.layers() * parts_.groups() * parts_.groups());
  for (const AmpMixedParts::Pace& pace : paces) {
    StageType type;
    type.count = pace.count;
    size *= type.count + 1;
    type.time_before_s = pace.table->time_before_s;
    for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
      const auto first =
          AmpMixedJob::first_allowed(best, one_f_one_b_in_flight(configuration, stage));
      type.first_allowed.emplace_back(first.begin(), first.end());
    }
    chain.types.push_back(std::move(type));
  }
  std::vector<double> hop_s;
  for (const double bytes : job_.handover_bytes(configuration)) {
    hop_s.push_back(parts_.fastest_hop_s(bytes));
  }
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
  whole.bound_s =
      assignment->pipeline_s * kBelowRounding + parts_.least_sync_s(c, best.synced_parameters);
  for (const std::int32_t type : assignment->type) {
    whole.groups.push_back(paces[at(type)].group);
  }
  return whole;
}

double AmpMixedPlacement::part_bound_s(const PartialPlacement& partial) {
  const Configuration& configuration = job_.configurations()[partial.shape];
  const AmpMixedParts::Stages stages = parts_.stages(partial);
  AssignmentChain chain;
  chain.micro_batches = configuration.num_micro_batches;
  std::vector<std::vector<double>> hop_s;
  const std::vector<double> bytes = job_.handover_bytes(configuration);
  for (std::int32_t stage = 0; stage < configuration.pp; ++stage) {
    AmpMixedJob::StageTable& table = *stages.tables[at(stage)];
    chain.stages.push_back(
        {table.time_before_s,
         AmpMixedJob::first_allowed(table, one_f_one_b_in_flight(configuration, stage))});
    if (stage + 1 == configuration.pp) break;
    std::vector<double>& hop = hop_s.emplace_back();
    for (const double of_class : bytes) hop.push_back(parts_.hop_s(partial, at(stage), of_class));
  }
  fill_boundaries(hop_s, chain.boundary_s);
  const auto assignment = assign_layers(chain);
  if (!assignment.has_value()) return kInfinity;
  return assignment->pipeline_s + stages.sync_s;
}

}  // namespace

AmpMixedPlacements place_amp_mixed(AmpMixedJob& job, std::int64_t most_states,
                                   const Progress& progress) {
  AmpMixedParts parts(job);
  AmpMixedPlacements placements = AmpMixedPlacement(parts).run(most_states, progress);
  if (!job.is_graph()) return placements;
  return place_amp_mixed_as_graph(parts, std::move(placements), most_states, progress);
}

}  // namespace braid
