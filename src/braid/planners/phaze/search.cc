#include "braid/planners/phaze/search.h"

#include <algorithm>

#include "braid/base/infinity.h"

namespace braid {
namespace {

/// The least dp for each number of micro-batches of the busiest pipeline: more replicas than that
/// synchronise longer and leave fewer devices to each, for nothing. At most 2·√micro-batches.
std::vector<std::int64_t> useful_dps(const PhazeProblem& problem) {
  std::vector<std::int64_t> dps;
  for (std::int64_t dp = 1; dp <= std::min(problem.devices, problem.micro_batches);) {
    dps.push_back(dp);
    const std::int64_t micro_batches = ceiling(problem.micro_batches, dp);
    if (micro_batches == 1) break;
    dp = ceiling(problem.micro_batches, micro_batches - 1);
  }
  return dps;
}

/// Stages behind `first`, `stages` of them, no longer than `longest_s`, with at most `devices`.
void append_stages(const PhazeSpace& space, PhazeCandidate first, std::int64_t stages,
                   std::int64_t devices, double longest_s, std::vector<PhazeCandidate>& found) {
  found.push_back(first);
  for (std::int64_t s = stages; s >= 1; --s) {
    devices -= first.devices;
    for (const PhazeCandidate& candidate : space.candidates->from(first.outer)) {
      if (candidate.most_from_end < s || load_of(candidate, s) > longest_s) continue;
      const auto behind = space.table->at(s - 1, candidate.outer);
      const bool fits = std::any_of(behind.begin(), behind.end(), [&](const PhazeEntry& entry) {
        return entry.devices + candidate.devices <= devices && entry.longest_s <= longest_s;
      });
      if (!fits) continue;
      first = candidate;
      break;
    }
    found.push_back(first);
  }
}

}  // namespace

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

double sync_factor(std::int64_t dp) {
  return 4 * static_cast<double>(dp - 1) / static_cast<double>(dp);
}

double load_of(const PhazeCandidate& candidate, std::int64_t from_end) {
  return from_end == 1 ? candidate.last_load_s : candidate.load_s;
}

double backward_of(const PhazeCandidate& candidate, std::int64_t from_end) {
  return from_end == 1 ? candidate.last_backward_s : candidate.backward_s;
}

std::optional<PhazeSequence> best_by_program(const PhazeSpace& space,
                                             const PhazeCombination& combination, double below_s) {
  const PhazeProblem& problem = *space.problem;
  const std::int64_t devices = problem.devices / combination.dp;
  const std::int64_t p = combination.stages;
  const auto factor = static_cast<double>(ceiling(problem.micro_batches, combination.dp) + p - 1);
  PhazeCandidate first;
  double longest_s = kInfinity;
  PhazeSequence best;
  best.objective_s = below_s;
  best.dp = combination.dp;
  for (const PhazeCandidate& candidate : space.candidates->from(0)) {
    if (candidate.most_from_end < p) continue;
    for (const PhazeEntry& behind : space.table->at(p - 1, candidate.outer)) {
      if (candidate.devices + behind.devices > devices) break;
      const double load_s = std::max(load_of(candidate, p), behind.longest_s);
      const double time_s = load_s * factor + sync_factor(combination.dp) * candidate.gradients_s;
      if (!(time_s < best.objective_s)) continue;
      best.objective_s = time_s;
      first = candidate;
      longest_s = load_s;
    }
  }
  if (!(longest_s < kInfinity)) return std::nullopt;
  append_stages(space, first, p - 1, devices, longest_s, best.stages);
  return best;
}

std::optional<PhazeSequence> best_by_program(const PhazeSpace& space, double below_s) {
  std::optional<PhazeSequence> best;
  for (const PhazeCombination& combination : phaze_combinations(space, PhazeObjective::program)) {
    if (!(combination.bound_s < below_s)) continue;
    auto found = best_by_program(space, combination, below_s);
    if (!found.has_value()) continue;
    below_s = found->objective_s;
    best = std::move(found);
  }
  return best;
}

PhazeFormulas phaze_formulas(const PhazeProblem& problem, std::int64_t dp,
                             const std::vector<PhazeCandidate>& stages) {
  double longest_s = 0, sum_s = 0, late_s = 0, backward_before_s = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto from_end = static_cast<std::int64_t>(stages.size() - i);
    const double load_s = load_of(stages[i], from_end);
    longest_s = std::max(longest_s, load_s);
    sum_s += load_s;
    late_s = std::max(late_s, sync_factor(dp) * stages[i].gradients_s - backward_before_s);
    backward_before_s += backward_of(stages[i], from_end);
  }
  const auto repeats = static_cast<double>(ceiling(problem.micro_batches, dp) - 1);
  return {longest_s * (repeats + static_cast<double>(stages.size())) +
              sync_factor(dp) * stages.front().gradients_s,
          repeats * longest_s + sum_s + late_s};
}

PhazeSums phaze_sums(const PhazeCandidates& candidates, std::size_t cuts) {
  PhazeSums sums;
  sums.before_s.assign(cuts, kInfinity);
  sums.before_s[0] = 0;
  std::vector<double> gradients_s(cuts, kInfinity);
  gradients_s[0] = 0;
  sums.all_s = kInfinity;
  // Candidates are sorted by their inner cut, so all that lead to it have been seen.
  for (const PhazeCandidate& candidate : candidates.all) {
    const std::uint32_t inner = candidate.inner, outer = candidate.outer;
    sums.before_s[outer] = std::min(sums.before_s[outer], sums.before_s[inner] + candidate.load_s);
    gradients_s[outer] = std::min(gradients_s[outer], gradients_s[inner] + candidate.gradients_s);
    if (outer + 1 == cuts) {
      sums.all_s = std::min(sums.all_s, sums.before_s[inner] + candidate.last_load_s);
    }
    if (candidate.load_s > 0) {
      sums.backward_share = std::max(sums.backward_share, candidate.backward_s / candidate.load_s);
    }
  }
  sums.gradients_s = gradients_s.back();
  return sums;
}

std::vector<PhazeCombination> phaze_combinations(const PhazeSpace& space,
                                                 PhazeObjective objective) {
  const PhazeProblem& problem = *space.problem;
  const PhazeSums& sums = *space.sums;
  std::vector<PhazeCombination> combinations;
  for (const std::int64_t dp : useful_dps(problem)) {
    const std::int64_t devices = problem.devices / dp;
    const std::int64_t micro_batches = ceiling(problem.micro_batches, dp);
    const double gradients_s = sync_factor(dp) * sums.gradients_s;
    for (std::int64_t p = 1; p <= std::min(space.table->stages(), devices); ++p) {
      const double least_s = space.table->least_longest_s(p, devices);
      if (!(least_s < kInfinity)) continue;
      if (objective == PhazeObjective::program) {
        const double bound_s = least_s * static_cast<double>(micro_batches + p - 1);
        combinations.push_back({bound_s * kBelowRounding, dp, p});
        continue;
      }
      // How often the longest load x counts beyond the sum of all. Of a path that stays on its
      // stage, the s-th from the end: (m - s)·x and the loads behind it, which are all others but
      // p - s that are no longer than x. Or forward passes alone.
      double repeats = static_cast<double>(micro_batches - 1);
      double others_s = 0;
      if (objective == PhazeObjective::simulated) {
        if (micro_batches > p) {
          repeats = static_cast<double>(micro_batches - p - 1);
          others_s = sums.all_s;
        } else {
          repeats *= 1 - sums.backward_share;
        }
      }
      // Synchronisation outlasts the end by Y ≥ sync_i - (backward passes before stage i). Summed
      // over the stages: all sync ≤ p·Y + p·(p - 1)/2 · longest backward pass, and that pass is at
      // most a share of x. The bound is convex and piecewise linear in x.
      const double hidden = sums.backward_share * static_cast<double>(p - 1) / 2;
      const auto bound_at = [&](double longest_s) {
        const double late_s = gradients_s / static_cast<double>(p) - hidden * longest_s;
        return repeats * longest_s + others_s + sums.all_s + std::max(0.0, late_s);
      };
      double bound_s = bound_at(least_s);
      if (hidden > 0) {
        const double kink_s = gradients_s / static_cast<double>(p) / hidden;
        if (kink_s > least_s) bound_s = std::min(bound_s, bound_at(kink_s));
      }
      combinations.push_back({bound_s * kBelowRounding, dp, p});
    }
  }
  return combinations;
}

}  // namespace braid
