#include "braid/planners/amp/mixed_planner.h"

#include <algorithm>
#include <utility>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/planners/amp/amp_mixed_job.h"
#include "braid/planners/amp/annealing.h"
#include "braid/planners/amp/mixed_graph_placement.h"
#include "braid/planners/amp/mixed_placement.h"
#include "braid/search/random_numbers.h"
#include "braid/search/random_tiling.h"

namespace braid {
namespace {

constexpr std::int64_t kMostStates = 20'000;

/// Nothing found within the budget is not proof that there is nothing.
Outcome finished(AmpMixedJob& amp, std::vector<AmpMixedAssignment> found, double bound_s,
                 std::int64_t work, bool complete) {
  const bool none = found.empty();
  Outcome outcome = amp.outcome(std::move(found), bound_s, work);
  if (none && !complete) outcome.status = Status::budget_exhausted;
  return outcome;
}

/// Walks go by layers cut in order and cut branches in what they found.
Outcome finished_search(AmpMixedJob& amp, AmpSearch<AmpMixedAssignment> search) {
  std::int64_t steps = 0;
  if (amp.is_graph()) search.work += cut_branches(amp, search.found, steps);
  return finished(amp, std::move(search.found), 0, search.work, amp.configurations().empty());
}

/// First devices of all shard groups, node by node.
std::vector<std::vector<std::int32_t>> shard_groups(const AmpMixedJob& amp,
                                                    const Configuration& configuration) {
  std::vector<std::vector<std::int32_t>> groups;
  for (const auto& devices : amp.nodes()) {
    auto& of_node = groups.emplace_back();
    for (std::size_t d = 0; d < devices.size(); d += at(configuration.tp)) {
      of_node.push_back(static_cast<std::int32_t>(devices[d]));
    }
  }
  return groups;
}

std::vector<std::int64_t> devices_of(const std::vector<std::int32_t>& groups,
                                     const Configuration& configuration) {
  std::vector<std::int64_t> devices;
  devices.reserve(groups.size() * at(configuration.tp));
  for (const std::int32_t first : groups) {
    for (std::int32_t shard = 0; shard < configuration.tp; ++shard) {
      devices.push_back(std::int64_t{first} + shard);
    }
  }
  return devices;
}

std::vector<std::int32_t> shuffled(const AmpMixedJob& amp, const Configuration& configuration,
                                   RandomNumbers& random) {
  std::vector<std::int32_t> all;
  for (const auto& of_node : shard_groups(amp, configuration)) {
    all.insert(all.end(), of_node.begin(), of_node.end());
  }
  random.shuffle(all);
  return all;
}

std::vector<std::int32_t> tiled(const AmpMixedJob& amp, const Configuration& configuration,
                                RandomNumbers& random) {
  const auto mesh = shard_groups(amp, configuration);
  const bool even = std::all_of(mesh.begin(), mesh.end(), [&](const auto& column) {
    return column.size() == mesh.front().size();
  });
  std::vector<std::int32_t> groups;
  if (even) groups = random_tiling(mesh, 1, configuration.dp, random);
  return groups.empty() ? shuffled(amp, configuration, random) : groups;
}

std::optional<AmpMixedAssignment> evaluate(AmpMixedJob& amp, const Configuration& configuration,
                                           const std::vector<std::int32_t>& groups) {
  return amp.evaluate(configuration,
                      AmpMixedJob::placement_of(configuration, devices_of(groups, configuration)));
}

}  // namespace

Outcome plan_amp_mixed(const Job& job, const System& system, const SpaceOptions& space,
                       const Budget& budget, const Progress& progress) {
  AmpMixedJob amp(job, system, space, "amp");
  AmpMixedPlacements placed =
      place_amp_mixed(amp, budget.or_by_default(kMostStates).work, progress);
  const bool complete = placed.bound_s == kInfinity;
  return finished(amp, std::move(placed.found), placed.bound_s, placed.states, complete);
}

Outcome plan_amp_sa_mixed(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress&) {
  AmpMixedJob amp(job, system, space, "amp-sa");
  auto search = amp_annealing<AmpMixedAssignment>(
      amp.configurations(), budget, [&](const Configuration& configuration, RandomNumbers& random) {
        return evaluate(amp, configuration, tiled(amp, configuration, random));
      });
  return finished_search(amp, std::move(search));
}

Outcome plan_random_mixed(const Job& job, const System& system, const SpaceOptions& space,
                          const Budget& budget, const Progress&) {
  AmpMixedJob amp(job, system, space, "random");
  auto search = amp_random_strategies<AmpMixedAssignment>(
      amp.configurations(), budget, [&](const Configuration& configuration, RandomNumbers& random) {
        return evaluate(amp, configuration, shuffled(amp, configuration, random));
      });
  return finished_search(amp, std::move(search));
}

}  // namespace braid
