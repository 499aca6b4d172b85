#include "braid/planners/piper/threshold.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Up to so many suffixes the sums of all stages are kept.
constexpr std::size_t kMostCachedSuffixes = 1500;

}  // namespace

std::int64_t PiperThreshold::ceil_of(double x) {
  x = std::min(x * kBelowRounding - kRoundingShare, static_cast<double>(kTooMany));
  const auto whole = static_cast<std::int64_t>(x);
  return static_cast<double>(whole) < x ? whole + 1 : whole;
}

PiperThreshold::PiperThreshold(const PiperProblem& problem, PiperTables& tables,
                               std::int64_t most_work)
    : problem_(problem),
      pricer_(problem),
      tables_(tables),
      most_work_(most_work),
      most_suffix_(std::min(problem.devices, problem.micro_batches)),
      exact_knapsack_(problem.rules.knapsack == PiperKnapsack::exact) {
  const std::size_t sets = tables.size();
  if (sets <= kMostCachedSuffixes) cached_.resize(sets * sets * tables.degrees().size());
}

PiperStageSums& PiperThreshold::stage_of(std::size_t inner, std::size_t outer,
                                         std::int32_t degree) {
  if (cached_.empty()) return uncached_ = tables_.sums(inner, outer, degree);
  Cached& entry = cached_[(outer * tables_.size() + inner) * tables_.degrees().size() +
                          static_cast<std::size_t>(degree)];
  if (!entry.known) entry = {true, tables_.sums(inner, outer, degree)};
  return entry.sums;
}

/// The first degree whose compute and synchronisation, on the fastest options, may keep the limit.
std::size_t PiperThreshold::first_fast_dp(const PiperStageSums& stage, double limit) const {
  const std::size_t none = tables_.dp_degrees().size();
  const auto batch = static_cast<double>(problem_.micro_batches);
  double least = stage.time / limit;
  if (problem_.rules.split == PiperSplit::uneven) {
    const double each = limit * batch / stage.time * kAboveRounding;
    if (each < 1) return none;
    if (each < batch) least = batch / static_cast<double>(static_cast<std::int64_t>(each));
  }
  if (problem_.rules.sync == PiperSync::per_batch && stage.sync_time > 0) {
    // (time - sync) / d + sync <= limit, where no share is less than 1/d.
    const double sync = 4 * stage.sync_time / batch;
    if (stage.time > sync) {
      if (limit <= sync) return none;
      least = std::max(least, (stage.time - sync) / (limit - sync));
    }
  }
  if (!(least <= batch)) return none;
  std::size_t dp = tables_.first_dp(ceil_of(least));
  while (dp < none && tables_.share(dp) * stage.time > limit) ++dp;
  return dp;
}

/// When gradients are synchronised every round and some degree was too slow: the first one above
/// that may not be.
std::size_t PiperThreshold::first_synchronised_dp(const PiperStageSums& stage, double limit) const {
  if (problem_.rules.sync == PiperSync::per_batch) return 0;
  // (time + 4·(1 - 1/d)·sync) / d <= limit, where no share is less than 1/d: a quadratic in d.
  const double sum = stage.time + 4 * stage.sync_time;
  const double square = sum * sum - 16 * stage.sync_time * limit;
  if (square <= 0) return 0;
  const double least = (sum + std::sqrt(square)) / (2 * limit) * kBelowTolerance;
  if (!(least <= static_cast<double>(problem_.micro_batches))) return tables_.dp_degrees().size();
  return tables_.first_dp(ceil_of(least));
}

/// The least data-parallel degree up to `most_dp` for which the stage keeps memory and the limit,
/// the sum of degrees behind it given; -1: none. Not exact: for which it may. `fast`: the first to
/// consider.
std::int32_t PiperThreshold::first_dp(PiperStageSums& stage, std::size_t fast, std::int64_t behind,
                                      double limit, std::int64_t most_dp, bool exact) {
  const auto dps = tables_.dp_degrees();
  std::size_t dp = fast;
  bool memory_seen = false;
  while (dp < dps.size() && dps[dp] <= most_dp) {
    ++work_;
    const double sync = tables_.sync_factor(dp) * stage.sync_time;
    if (tables_.share(dp) * stage.time + sync > limit) {
      dp = std::max(dp + 1, first_synchronised_dp(stage, limit));
      continue;
    }
    const std::int64_t in_flight = 1 + (behind + dps[dp] - 1) / dps[dp];
    if (in_flight <= stage.most_in_flight_fast) return static_cast<std::int32_t>(dp);
    if (!memory_seen) {
      const std::int64_t most = tables_.most_in_flight(stage);
      if (most < 1 || (most == 1 && behind > 0)) return kNone;
      const std::size_t first =
          behind == 0 ? 0 : tables_.first_dp((behind + most - 2) / (most - 1));
      memory_seen = true;
      if (first > dp) {
        dp = first;
        continue;
      }
    }
    const double time = tables_.least_time_within(stage, in_flight);
    if (tables_.share(dp) * time + sync <= limit) {
      if (!exact) return static_cast<std::int32_t>(dp);
      if (tables_.keeps(stage, tables_.share(dp), tables_.sync_factor(dp), in_flight, limit)) {
        return static_cast<std::int32_t>(dp);
      }
      ++dp;
      continue;
    }
    // Go on where replicas are enough for this time, or fewer are in flight.
    const std::size_t other =
        in_flight <= 2 ? dps.size() : tables_.first_dp((behind + in_flight - 3) / (in_flight - 2));
    ++dp;
    while (dp < other && tables_.share(dp) * time > limit) ++dp;
  }
  return kNone;
}

void PiperThreshold::bound_suffix(std::size_t inner, std::size_t outer, double limit) {
  const std::int64_t behind = least_suffix_[inner];
  // A single tensor degree leaves nothing but the knapsack between this bound and a solution.
  const bool exact = tables_.degrees().size() == 1 && exact_knapsack_;
  const double parts = (tables_.least_time(outer) - tables_.least_time(inner)) / limit;
  if (!(parts <= static_cast<double>(most_suffix_))) return;
  const std::size_t least = tables_.first_dp(ceil_of(std::max(parts, 0.0)));
  if (least >= tables_.dp_degrees().size()) return;
  const std::int64_t least_dp = tables_.dp_degrees()[least];
  for (std::int32_t degree = 0; degree < static_cast<std::int32_t>(tables_.degrees().size());
       ++degree) {
    const std::int64_t tp = tables_.degrees()[static_cast<std::size_t>(degree)];
    // Some use only if it lowers one of the bounds.
    std::int64_t most_dp =
        std::max(std::min(most_devices_here_, least_devices_[outer] - 1) - least_devices_[inner],
                 std::int64_t{0}) /
        tp;
    most_dp = std::max(most_dp, std::min(most_suffix_here_, least_suffix_[outer] - 1) - behind);
    most_dp = std::min(
        {most_dp, most_suffix_here_ - behind, (most_devices_here_ - least_devices_[inner]) / tp});
    if (most_dp < least_dp) continue;
    PiperStageSums& stage = stage_of(inner, outer, degree);
    if (!stage.possible) continue;
    const std::int32_t dp =
        first_dp(stage, first_fast_dp(stage, limit), behind, limit, most_dp, exact);
    if (dp < 0) continue;
    const std::int64_t replicas = tables_.dp_degrees()[static_cast<std::size_t>(dp)];
    least_suffix_[outer] = std::min(least_suffix_[outer], behind + replicas);
    const std::int64_t devices = least_devices_[inner] + replicas * tp;
    if (devices < least_devices_[outer]) {
      least_devices_[outer] = devices;
      links_[outer] = {static_cast<std::int32_t>(inner), degree, dp};
    }
  }
}

/// With a single tensor degree both bounds are one number, and what a suffix's stages waste of
/// their replicas' time under the limit, never negative, tells which suffixes can do better behind
/// `outer`.
void PiperThreshold::bound_by_waste(std::size_t outer, double limit) {
  const double time = tables_.least_time(outer);
  const auto tolerable = [&] {
    const std::int64_t best = std::min(least_suffix_[outer], most_suffix_here_ + 1);
    return static_cast<double>(best - 1) * limit - time * (1 - kSameTime);
  };
  double most_waste = tolerable();
  for (std::size_t inner = 0; most_waste >= 0 && inner < outer; ++inner) {
    if (waste_[inner] > most_waste || !tables_.is_subset(inner, outer)) continue;
    bound_suffix(inner, outer, limit);
    most_waste = tolerable();
  }
  if (least_suffix_[outer] < kTooMany) {
    waste_[outer] = static_cast<double>(least_suffix_[outer]) * limit - time * (1 + kSameTime);
  }
}

bool PiperThreshold::may_keep(double limit) {
  const std::size_t sets = tables_.size();
  least_devices_.assign(sets, kTooMany);
  least_suffix_.assign(sets, kTooMany);
  links_.resize(sets);
  least_devices_[0] = least_suffix_[0] = 0;
  waste_.assign(sets, kInfinity);
  waste_[0] = 0;
  const double all_work = tables_.least_work(sets - 1), all_time = tables_.least_time(sets - 1);
  for (std::size_t outer = 1; outer < sets && !exhausted(); ++outer) {
    most_devices_here_ = problem_.devices - ceil_of((all_work - tables_.least_work(outer)) / limit);
    most_suffix_here_ = most_suffix_ - ceil_of((all_time - tables_.least_time(outer)) / limit);
    // What was best for the last limit is a good start: most others cannot beat it.
    const std::int32_t likely = std::exchange(links_[outer], {}).inner;
    if (likely >= 0 && least_devices_[static_cast<std::size_t>(likely)] < kTooMany) {
      bound_suffix(static_cast<std::size_t>(likely), outer, limit);
    }
    if (tables_.degrees().size() == 1) {
      bound_by_waste(outer, limit);
      continue;
    }
    for (std::size_t inner = 0; inner < outer; ++inner) {
      if (least_devices_[inner] < kTooMany && tables_.is_subset(inner, outer)) {
        bound_suffix(inner, outer, limit);
      }
    }
  }
  return least_devices_[sets - 1] < kTooMany || exhausted();
}

std::optional<std::vector<PiperStage>> PiperThreshold::bounding_stages(double limit) {
  std::vector<PiperStage> stages;
  std::vector<std::size_t> path;
  for (std::size_t set = tables_.size() - 1; set != 0;) {
    if (links_[set].inner == kNone) return std::nullopt;
    path.push_back(set);
    set = static_cast<std::size_t>(links_[set].inner);
  }
  std::int64_t devices = 0, suffix = 0;
  for (std::size_t i = path.size(); i-- > 0;) {
    const Link& link = links_[path[i]];
    PiperStageSums sums = stage_of(static_cast<std::size_t>(link.inner), path[i], link.degree);
    const std::int32_t dp =
        first_dp(sums, first_fast_dp(sums, limit), suffix, limit, most_suffix_ - suffix, true);
    if (dp < 0) return std::nullopt;
    const std::int64_t replicas = tables_.dp_degrees()[static_cast<std::size_t>(dp)];
    const std::int64_t in_flight = 1 + (suffix + replicas - 1) / replicas;
    suffix += replicas;
    devices += replicas * tables_.degrees()[static_cast<std::size_t>(link.degree)];
    if (devices > problem_.devices || suffix > most_suffix_) return std::nullopt;
    stages.push_back(tables_.choose(sums, static_cast<std::size_t>(dp), in_flight));
  }
  std::reverse(stages.begin(), stages.end());
  return price(std::move(stages));
}

std::optional<PiperSolution> PiperThreshold::keep(double limit) {
  if (!may_keep(limit) || exhausted()) return std::nullopt;
  auto stages = bounding_stages(limit);
  if (!stages) stages = followed_stages(limit);
  if (!stages) return std::nullopt;
  return piper_solution_of(std::move(*stages));
}

std::vector<PiperStage> PiperThreshold::price(std::vector<PiperStage> stages) {
  std::int64_t suffix = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    suffix += stages[i].dp;
    stages[i].suffix = suffix;
    pricer_.price(stages[i]);
  }
  return stages;
}

}  // namespace braid
