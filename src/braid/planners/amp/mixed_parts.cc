#include "braid/planners/amp/mixed_parts.h"

#include <algorithm>
#include <numeric>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/planners/amp/amp_job.h"
#include "braid/system/links.h"

namespace braid {

AmpMixedParts::AmpMixedParts(AmpMixedJob& job) : job_(job), links_(job) {
  for (const auto& devices : job.nodes()) {
    group_.push_back(placement_of(job.mixed().system(), devices.front()).group);
  }
  for (const Configuration& configuration : job.configurations()) {
    PlacementShape& shape = shapes_.emplace_back();
    shape.stages = configuration.pp;
    shape.replicas = configuration.dp;
    for (const auto& devices : job.nodes()) {
      shape.capacity.push_back(static_cast<std::int32_t>(devices.size() / at(configuration.tp)));
    }
  }
}

AmpMixedJob::StageTable& AmpMixedParts::fastest(std::size_t c,
                                                const std::vector<std::size_t>& groups) {
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
      best.synced_parameters = table.synced_parameters;
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
  best.times_s = std::move(times_s);
  return best;
}

std::vector<AmpMixedParts::Pace> AmpMixedParts::paces(std::size_t c) {
  const Configuration& configuration = job_.configurations()[c];
  std::vector<std::pair<double, std::size_t>> by_pace;
  std::vector<std::int64_t> capacity(groups(), 0);
  for (std::size_t node = 0; node < group_.size(); ++node) {
    capacity[group_[node]] += shapes_[c].capacity[node];
  }
  for (std::size_t group = 0; group < capacity.size(); ++group) {
    const std::size_t one[] = {group};
    by_pace.emplace_back(job_.table(configuration, one).time_before_s.back(), group);
  }
  std::sort(by_pace.begin(), by_pace.end());
  std::vector<Pace> paces;
  std::int64_t before = 0, stages_before = 0;
  for (std::size_t k = 0; k < by_pace.size(); ++k) {
    std::vector<std::size_t> slower;
    for (std::size_t j = k; j < by_pace.size(); ++j) slower.push_back(by_pace[j].second);
    std::sort(slower.begin(), slower.end());
    before += capacity[by_pace[k].second];
    const bool last = k + 1 == by_pace.size();
    const std::int64_t stages_so_far = last ? configuration.pp : before / configuration.dp;
    const auto count = static_cast<std::int32_t>(stages_so_far - stages_before);
    stages_before = stages_so_far;
    if (count > 0) paces.push_back({by_pace[k].second, count, &fastest(c, slower)});
  }
  return paces;
}

AmpMixedParts::Stages AmpMixedParts::stages(const PartialPlacement& partial) {
  const Configuration& configuration = job_.configurations()[partial.shape];
  const std::vector<std::int32_t> left = capacity_left(shapes_[partial.shape], partial);
  std::vector<std::size_t> free_groups;
  for (std::size_t node = 0; node < left.size(); ++node) {
    if (left[node] > 0 && (free_groups.empty() || free_groups.back() != group_[node])) {
      free_groups.push_back(group_[node]);
    }
  }
  Stages stages;
  double rates = 0, parameters = 0;
  for (std::size_t stage = 0; stage < at(configuration.pp); ++stage) {
    double ring = fastest_ring(configuration);
    AmpMixedJob::StageTable* table = nullptr;
    if (stage < partial.stages.size()) {
      const auto& nodes = partial.stages[stage];
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
    parameters = table->synced_parameters;
    rates += ring;
    stages.tables.push_back(table);
  }
  stages.sync_s = least_sync_s(partial.shape, parameters, rates);
  return stages;
}

double AmpMixedParts::hop_s(const PartialPlacement& partial, std::size_t stage, double bytes) {
  if (stage + 1 >= partial.stages.size()) return links_.fastest_message_s(bytes);
  double slowest_s = 0;
  for (std::size_t r = 0; r < partial.stages[stage].size(); ++r) {
    slowest_s = std::max(
        slowest_s, links_.message_s(bytes, partial.stages[stage][r], partial.stages[stage + 1][r]));
  }
  return slowest_s;
}

double AmpMixedParts::least_sync_s(std::size_t c, double parameters) const {
  const Configuration& configuration = job_.configurations()[c];
  return least_sync_s(c, parameters, configuration.pp * fastest_ring(configuration));
}

double AmpMixedParts::least_sync_s(std::size_t c, double parameters, double rates) const {
  const Configuration& configuration = job_.configurations()[c];
  if (configuration.dp == 1) return 0;
  return parameters * ring_bytes_per_parameter(configuration.dp, job_.mixed().job().precision) /
         rates;
}

double AmpMixedParts::fastest_ring(const Configuration& configuration) const {
  std::size_t largest = 0;
  for (const auto& devices : job_.nodes()) largest = std::max(largest, devices.size());
  return links_.fastest_ring(at(std::int64_t{configuration.dp} * configuration.tp) <= largest);
}

PlacementSearchResult AmpMixedParts::search(PlacementCosts& costs, double best_s,
                                            std::int64_t most_states,
                                            const Progress& progress) const {
  PlacementSearchOptions options;
  options.first_alike = links_.first_alike();
  options.best_s = best_s;
  options.most_states = most_states;
  options.progress = progress;
  return search_placements(shapes_, options, costs);
}

std::vector<std::int64_t> AmpMixedParts::devices_of(const PartialPlacement& placement) const {
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
  return devices;
}

}  // namespace braid
