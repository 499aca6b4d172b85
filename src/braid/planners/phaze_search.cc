#include "braid/planners/phaze_search.h"

#include <algorithm>
#include <limits>

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds compare with sums that were rounded in another order.
constexpr double kRounding = 1 - 1e-12;

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

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

/// Share of weights / bandwidth that synchronising dp replicas takes.
double sync_factor(std::int64_t dp) {
  return 4 * static_cast<double>(dp - 1) / static_cast<double>(dp);
}

double load_of(const PhazeCandidate& candidate, std::int64_t from_end) {
  return from_end == 1 ? candidate.last_load_s : candidate.load_s;
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

std::optional<PhazeFound> best_by_program(const PhazeSpace& space, double below_s) {
  const PhazeProblem& problem = *space.problem;
  PhazeFound best;
  best.objective_s = below_s;
  PhazeCandidate first;
  std::int64_t stages = 0;
  double longest_s = 0;
  for (const std::int64_t dp : useful_dps(problem)) {
    const std::int64_t devices = problem.devices / dp;
    const std::int64_t micro_batches = ceiling(problem.micro_batches, dp);
    for (std::int64_t p = 1; p <= std::min(space.table->stages(), devices); ++p) {
      const auto factor = static_cast<double>(micro_batches + p - 1);
      if (!(space.table->least_longest_s(p, devices) * factor < best.objective_s)) continue;
      for (const PhazeCandidate& candidate : space.candidates->from(0)) {
        if (candidate.most_from_end < p) continue;
        for (const PhazeEntry& behind : space.table->at(p - 1, candidate.outer)) {
          if (candidate.devices + behind.devices > devices) break;
          const double load_s = std::max(load_of(candidate, p), behind.longest_s);
          const double time_s = load_s * factor + sync_factor(dp) * candidate.gradients_s;
          if (!(time_s < best.objective_s)) continue;
          best.objective_s = time_s;
          best.dp = dp;
          first = candidate;
          stages = p;
          longest_s = load_s;
        }
      }
    }
  }
  if (stages == 0) return std::nullopt;
  append_stages(space, first, stages - 1, problem.devices / best.dp, longest_s, best.stages);
  return best;
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

std::vector<PhazeCombination> phaze_combinations(const PhazeSpace& space) {
  const PhazeProblem& problem = *space.problem;
  const PhazeSums& sums = *space.sums;
  std::vector<PhazeCombination> combinations;
  for (const std::int64_t dp : useful_dps(problem)) {
    const std::int64_t devices = problem.devices / dp;
    const auto repeats = static_cast<double>(ceiling(problem.micro_batches, dp) - 1);
    const double gradients_s = sync_factor(dp) * sums.gradients_s;
    for (std::int64_t p = 1; p <= std::min(space.table->stages(), devices); ++p) {
      const double least_s = space.table->least_longest_s(p, devices);
      if (!(least_s < kInfinity)) continue;
      // Synchronisation outlasts the end by Y ≥ sync_i - (backward passes before stage i). Summed
      // over the stages: all sync ≤ p·Y + p·(p - 1)/2 · longest backward pass, and that pass is at
      // most a share of the longest load x. The bound is convex and piecewise linear in x.
      const double hidden = sums.backward_share * static_cast<double>(p - 1) / 2;
      const auto bound_at = [&](double longest_s) {
        const double late_s = gradients_s / static_cast<double>(p) - hidden * longest_s;
        return repeats * longest_s + sums.all_s + std::max(0.0, late_s);
      };
      double bound_s = bound_at(least_s);
      if (hidden > 0) {
        const double kink_s = gradients_s / static_cast<double>(p) / hidden;
        if (kink_s > least_s) bound_s = std::min(bound_s, bound_at(kink_s));
      }
      combinations.push_back({bound_s * kRounding, dp, p});
    }
  }
  return combinations;
}

namespace {

/// The last stages of a plan, from one cut on.
struct Label {
  std::int64_t devices = 0;
  double longest_s = 0, sum_s = 0;
  double sync_s = 0;  ///< By which synchronisation outlasts the first of these stages.
  const PhazeCandidate* first = nullptr;
  std::int32_t behind = -1;  ///< Label at first->outer with one stage less.
};

bool dominates(const Label& a, const Label& b) {
  return a.devices <= b.devices && a.longest_s <= b.longest_s && a.sum_s <= b.sum_s &&
         a.sync_s <= b.sync_s;
}

void insert(std::vector<Label>& labels, std::size_t begin, const Label& label) {
  for (std::size_t i = begin; i < labels.size(); ++i) {
    if (dominates(labels[i], label)) return;
  }
  const auto first = labels.begin() + static_cast<std::ptrdiff_t>(begin);
  labels.erase(std::remove_if(first, labels.end(),
                              [&](const Label& other) { return dominates(label, other); }),
               labels.end());
  labels.push_back(label);
}

}  // namespace

std::optional<PhazeFound> best_by_flush(const PhazeSpace& space,
                                        const PhazeCombination& combination, double below_s) {
  const PhazeProblem& problem = *space.problem;
  const std::int64_t devices = problem.devices / combination.dp;
  const auto repeats = static_cast<double>(ceiling(problem.micro_batches, combination.dp) - 1);
  const double sync = sync_factor(combination.dp);
  const std::vector<double>& before_s = space.sums->before_s;

  // labels[s]: by cut, with offsets.
  std::vector<std::vector<Label>> labels = {{Label{}}};
  std::vector<std::vector<std::size_t>> offsets(1, std::vector<std::size_t>(space.cuts + 1, 0));
  offsets.front().back() = 1;
  for (std::int64_t s = 1; s <= combination.stages; ++s) {
    std::vector<Label> made;
    std::vector<std::size_t> offset(space.cuts + 1, 0);
    const auto& behind_offset = offsets.back();
    const bool first_stage = s == combination.stages;
    for (std::size_t cut = 0; cut < space.cuts; ++cut) {
      const std::size_t begin = made.size();
      if (first_stage == (cut == 0) && before_s[cut] < kInfinity) {
        // The stages still to come cannot all be shorter than their mean.
        const double mean_s =
            first_stage ? 0
                        : kRounding * before_s[cut] / static_cast<double>(combination.stages - s);
        for (const PhazeCandidate& candidate : space.candidates->from(cut)) {
          if (candidate.most_from_end < s) continue;
          const double load_s = load_of(candidate, s);
          const double backward_s = s == 1 ? candidate.last_backward_s : candidate.backward_s;
          if (!(repeats * std::max(load_s, mean_s) + load_s + before_s[cut] < below_s)) continue;
          for (std::size_t i = behind_offset[candidate.outer];
               i < behind_offset[candidate.outer + 1]; ++i) {
            const Label& behind = labels.back()[i];
            Label label;
            label.devices = behind.devices + candidate.devices;
            // Each stage still to come takes a device at least.
            if (label.devices + (combination.stages - s) > devices) continue;
            label.longest_s = std::max(behind.longest_s, load_s);
            label.sum_s = behind.sum_s + load_s;
            label.sync_s = std::max(sync * candidate.gradients_s, behind.sync_s - backward_s);
            double bound_s =
                repeats * std::max(label.longest_s, mean_s) + label.sum_s + before_s[cut];
            if (first_stage) bound_s += label.sync_s;
            if (!(bound_s < below_s)) continue;
            label.first = &candidate;
            label.behind = static_cast<std::int32_t>(i);
            if (first_stage) {
              below_s = bound_s;
              made.assign(1, label);
            } else {
              insert(made, begin, label);
            }
          }
        }
      }
      offset[cut + 1] = made.size();
    }
    if (made.empty()) return std::nullopt;
    labels.push_back(std::move(made));
    offsets.push_back(std::move(offset));
  }

  PhazeFound found;
  found.objective_s = below_s;
  found.dp = combination.dp;
  std::int32_t at = 0;
  for (std::size_t s = labels.size(); s-- > 1;) {
    const Label& label = labels[s][static_cast<std::size_t>(at)];
    found.stages.push_back(*label.first);
    at = label.behind;
  }
  return found;
}

}  // namespace braid
