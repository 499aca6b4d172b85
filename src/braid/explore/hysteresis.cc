#include "braid/explore/hysteresis.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "braid/base/parallel.h"
#include "braid/explore/search_value.h"
#include "braid/planners/registry.h"

namespace braid {
namespace {

constexpr std::size_t kArchitectureAxis = kMethodAxis + 1;

/// What a walk holds fixed.
struct WalkSetting {
  SpacePoint place;  ///< Values of the axes but workload, planner and architecture.
  Degrees micro_batch;
  std::optional<Recompute> recompute;
};

std::vector<WalkSetting> walk_settings(const Space& space, std::size_t planner) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  const SpaceOptions& options = systems.options;
  std::vector<Degrees> micro_batches;
  for (const int size : options.micro_batch.list()) {
    if (options.micro_batch.allows(size)) micro_batches.emplace_back(size);
  }
  if (micro_batches.empty()) micro_batches.push_back(options.micro_batch);
  std::vector<std::optional<Recompute>> recomputes{options.recompute};
  if (!options.recompute && find_planner(systems.planners[planner]).recomputes_all) {
    recomputes = {Recompute::none, Recompute::full};
  }
  std::vector<WalkSetting> settings;
  for (SpacePoint place : places_from(space, kArchitectureAxis + 1)) {
    place[kMethodAxis] = planner;
    for (const Degrees& micro_batch : micro_batches) {
      for (const auto& recompute : recomputes) {
        settings.push_back({place, micro_batch, recompute});
      }
    }
  }
  return settings;
}

/// By the figure that the space is searched for; 0: some workload has no plan.
double planned_value(const SystemSpace& systems, SpacePoint point,
                     const std::shared_ptr<NestMemo>& nests) {
  std::vector<double> amounts;
  SystemCost cost;
  for (std::size_t w = 0; w < systems.workloads.size(); ++w) {
    point[kWorkloadAxis] = w;
    const PointResult result = plan_point(systems, point, nests).result;
    if (!is_found(result)) return 0;
    amounts.push_back(searched_amount(systems, result));
    cost = {result.usd, result.watts};
  }
  return search_value(systems, amounts, cost);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> area_buckets(std::span<const Architecture> all,
                                                     double bucket_um2) {
  std::map<std::int64_t, std::vector<std::uint32_t>, std::greater<>> buckets;
  for (std::size_t i = 0; i < all.size(); ++i) {
    buckets[static_cast<std::int64_t>(all[i].area_um2 / bucket_um2)].push_back(
        static_cast<std::uint32_t>(i));
  }
  std::vector<std::vector<std::uint32_t>> sorted;
  sorted.reserve(buckets.size());
  for (auto& [area, members] : buckets) sorted.push_back(std::move(members));
  return sorted;
}

bool is_converged(std::span<const double> maxima, std::size_t buckets) {
  if (maxima.size() < buckets) return false;
  const std::span<const double> last = maxima.last(buckets);
  return std::is_sorted(last.rbegin(), last.rend());
}

AreaWalk walk_by_area(std::span<const Architecture> all, const HysteresisRule& rule,
                      const std::function<double(std::uint32_t)>& value) {
  AreaWalk walk;
  std::vector<double> maxima;
  for (const std::vector<std::uint32_t>& bucket : area_buckets(all, rule.bucket_um2)) {
    double most = 0;
    for (const std::uint32_t architecture : bucket) {
      const double reached = value(architecture);
      walk.seen.push_back(architecture);
      most = std::max(most, reached);
      if (!(reached > walk.value)) continue;
      walk.value = reached;
      walk.best = architecture;
    }
    maxima.push_back(most);
    if (is_converged(maxima, rule.buckets)) break;
  }
  return walk;
}

HysteresisFinding search_by_hysteresis(const Space& space, std::size_t planner,
                                       const HysteresisRule& rule) {
  const SystemSpace& systems = std::get<SystemSpace>(space.points);
  assert(systems.search && systems.architectures);
  const std::vector<Architecture>& all = systems.architectures->all;
  const std::vector<WalkSetting> settings = walk_settings(space, planner);
  const auto nests = std::make_shared<NestMemo>();
  std::vector<AreaWalk> walks(settings.size());
  parallel_for(settings.size(), [&](std::size_t i) {
    SystemSpace fixed = systems;
    fixed.options.micro_batch = settings[i].micro_batch;
    fixed.options.recompute = settings[i].recompute;
    walks[i] = walk_by_area(all, rule, [&](std::uint32_t architecture) {
      SpacePoint point = settings[i].place;
      point[kArchitectureAxis] = architecture;
      return planned_value(fixed, std::move(point), nests);
    });
  });
  HysteresisFinding finding;
  finding.walks = walks.size();
  std::vector<bool> is_seen(all.size(), false);
  for (std::size_t i = 0; i < walks.size(); ++i) {
    for (const std::uint32_t architecture : walks[i].seen) is_seen[architecture] = true;
    if (!(walks[i].value > finding.value)) continue;
    finding.value = walks[i].value;
    finding.system.value = walks[i].value;
    finding.system.place = settings[i].place;
    finding.system.place[kArchitectureAxis] = walks[i].best;
    finding.system.place[kMethodAxis] = 0;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_seen[i]) continue;
    const double area = all[i].area_um2;
    finding.least_area_um2 =
        finding.architectures == 0 ? area : std::min(finding.least_area_um2, area);
    ++finding.architectures;
  }
  return finding;
}

}  // namespace braid
