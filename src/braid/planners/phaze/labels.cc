#include <algorithm>
#include <span>

#include "braid/base/infinity.h"
#include "braid/base/pareto_front.h"
#include "braid/planners/phaze/search.h"

namespace braid {
namespace {

/// The last stages of a plan, from one cut on.
struct PhazeLabel {
  std::int64_t devices = 0;
  PhazePath path;
  double sync_s = 0;  ///< By which synchronisation outlasts the first of these stages.
  const PhazeCandidate* first = nullptr;
  std::int32_t behind = -1;  ///< PhazeLabel at first->outer with one stage less.
};

bool no_worse(const PhazeLabel& a, const PhazeLabel& b) {
  return a.devices <= b.devices && a.path.longest_s <= b.path.longest_s &&
         a.path.sum_s <= b.path.sum_s && a.sync_s <= b.sync_s;
}

void insert(std::vector<PhazeLabel>& labels, std::size_t begin, const PhazeLabel& label) {
  if (is_dominated(std::span(labels).subspan(begin), label, no_worse)) return;
  put_in_front(labels, label, no_worse, begin);
}

/// PhazeObjective::flush: the longest load counts m - 1 times wherever it is.
class FlushPaths {
 public:
  static constexpr bool kRisesWithLoad = true;

  FlushPaths(std::int64_t micro_batches, std::int64_t stages)
      : repeats_(static_cast<double>(micro_batches - 1)), stages_(stages) {}

  PhazePath with(const PhazePath& behind, double load_s, double, std::int64_t) const {
    return {std::max(behind.longest_s, repeats_ * load_s), behind.sum_s + load_s};
  }
  /// The stages still to come cannot all be shorter than their mean.
  double least_longest_s(const PhazePath& path, double before_s, std::int64_t from_end) const {
    if (from_end == stages_) return path.longest_s;
    const double mean_s = kBelowRounding * before_s / static_cast<double>(stages_ - from_end);
    return std::max(path.longest_s, repeats_ * mean_s);
  }

 private:
  double repeats_;
  std::int64_t stages_;
};

/// path_bound_s().
class SchedulePaths {
 public:
  static constexpr bool kRisesWithLoad = false;  // Forward passes count on their own.

  SchedulePaths(std::int64_t micro_batches, std::int64_t stages)
      : micro_batches_(micro_batches), stages_(stages) {}

  PhazePath with(PhazePath path, double load_s, double backward_s, std::int64_t from_end) const {
    path.prepend(load_s - backward_s, backward_s, from_end, micro_batches_);
    return path;
  }
  /// Of the paths that stay on the stages still to come, k of them, an average weighted so that all
  /// their loads count the same has (m - s - 1)/k times their sum, and all that is behind.
  double least_longest_s(const PhazePath& path, double before_s, std::int64_t from_end) const {
    if (from_end == stages_ || micro_batches_ <= stages_) return path.longest_s;
    const double share = static_cast<double>(micro_batches_ - from_end - 1) /
                         static_cast<double>(stages_ - from_end);
    return std::max(path.longest_s, kBelowRounding * (path.sum_s + share * before_s));
  }

 private:
  std::int64_t micro_batches_, stages_;
};

/// The plan of a combination with the least longest path + sum of loads + late synchronisation, if
/// that is below `below_s`: undominated partial plans, from the last stages on.
template <typename Paths>
std::optional<PhazeSequence> best_of_labels(const PhazeSpace& space,
                                            const PhazeCombination& combination, double below_s) {
  const PhazeProblem& problem = *space.problem;
  const std::int64_t devices = problem.devices / combination.dp;
  const Paths paths(ceiling(problem.micro_batches, combination.dp), combination.stages);
  const double sync = sync_factor(combination.dp);
  const std::vector<double>& before_s = space.sums->before_s;
  const bool rising = Paths::kRisesWithLoad && space.candidates->rising;

  // labels[s]: by cut, with offsets.
  std::vector<std::vector<PhazeLabel>> labels = {{PhazeLabel{}}};
  std::vector<std::vector<std::size_t>> offsets(1, std::vector<std::size_t>(space.cuts + 1, 0));
  offsets.front().back() = 1;
  for (std::int64_t s = 1; s <= combination.stages; ++s) {
    std::vector<PhazeLabel> made;
    std::vector<std::size_t> offset(space.cuts + 1, 0);
    const auto& behind_offset = offsets.back();
    const bool first_stage = s == combination.stages;
    for (std::size_t cut = 0; cut < space.cuts; ++cut) {
      const std::size_t begin = made.size();
      if (first_stage == (cut == 0) && before_s[cut] < kInfinity) {
        const PhazePath nothing;
        for (const PhazeCandidate& candidate : space.candidates->from(cut)) {
          if (candidate.most_from_end < s) {
            if (rising) break;
            continue;
          }
          const double load_s = load_of(candidate, s);
          const double backward_s = backward_of(candidate, s);
          const PhazePath alone = paths.with(nothing, load_s, backward_s, s);
          if (!(paths.least_longest_s(alone, before_s[cut], s) + load_s + before_s[cut] <
                below_s)) {
            if (rising) break;
            continue;
          }
          for (std::size_t i = behind_offset[candidate.outer];
               i < behind_offset[candidate.outer + 1]; ++i) {
            const PhazeLabel& behind = labels.back()[i];
            PhazeLabel label;
            label.devices = behind.devices + candidate.devices;
            // Each stage still to come takes a device at least.
            if (label.devices + (combination.stages - s) > devices) continue;
            label.path = paths.with(behind.path, load_s, backward_s, s);
            label.sync_s = std::max(sync * candidate.gradients_s, behind.sync_s - backward_s);
            double bound_s = paths.least_longest_s(label.path, before_s[cut], s) +
                             label.path.sum_s + before_s[cut];
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

  PhazeSequence found;
  found.objective_s = below_s;
  found.dp = combination.dp;
  std::int32_t at = 0;
  for (std::size_t s = labels.size(); s-- > 1;) {
    const PhazeLabel& label = labels[s][static_cast<std::size_t>(at)];
    found.stages.push_back(*label.first);
    at = label.behind;
  }
  return found;
}

}  // namespace

void PhazePath::prepend(double forward_s, double backward_s, std::int64_t from_end,
                        std::int64_t micro_batches) {
  const OneFOneBTurns turns = OneFOneBTurns::of(from_end, micro_batches);
  longest_s = std::max(longest_s, turns.rising_excess_s(forward_s, backward_s, sum_s));
  sum_s += forward_s + backward_s;
}

double path_bound_s(const PhazeProblem& problem, std::int64_t dp,
                    const std::vector<PhazeCandidate>& stages) {
  const std::int64_t micro_batches = ceiling(problem.micro_batches, dp);
  PhazePath path;
  double sync_s = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    const auto from_end = static_cast<std::int64_t>(stages.size() - i);
    const double backward_s = backward_of(stages[i], from_end);
    path.prepend(load_of(stages[i], from_end) - backward_s, backward_s, from_end, micro_batches);
    sync_s = std::max(sync_factor(dp) * stages[i].gradients_s, sync_s - backward_s);
  }
  return path.longest_s + path.sum_s + sync_s;
}

std::optional<PhazeSequence> best_by_flush(const PhazeSpace& space,
                                           const PhazeCombination& combination, double below_s) {
  return best_of_labels<FlushPaths>(space, combination, below_s);
}

std::optional<PhazeSequence> best_by_path(const PhazeSpace& space,
                                          const PhazeCombination& combination, double below_s) {
  return best_of_labels<SchedulePaths>(space, combination, below_s);
}

}  // namespace braid
