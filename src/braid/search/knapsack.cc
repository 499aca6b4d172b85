#include "braid/search/knapsack.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>

#include "braid/base/infinity.h"
#include "braid/base/rounding.h"

namespace braid {
namespace {

/// Partial selections kept before giving up.
constexpr std::size_t kMostSums = 2'000'000;
constexpr std::size_t kMostMixes = 100'000;

/// Cheapest choice; of several the lightest.
std::int32_t cheapest_of(std::span<const KnapsackChoice> choices) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < choices.size(); ++c) {
    if (std::tie(choices[c].cost, choices[c].weight) <
        std::tie(choices[best].cost, choices[best].weight)) {
      best = c;
    }
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace

bool Knapsack::relax(std::span<const KnapsackGroup> groups, double capacity) {
  steps_.clear();
  selection_.clear();
  double cost = 0, weight = 0;
  std::size_t first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const KnapsackGroup& group = groups[g];
    assert(!group.choices.empty() && group.count > 0);
    std::int32_t at = cheapest_of(group.choices);
    selection_.resize(first + group.choices.size(), 0);
    selection_[first + static_cast<std::size_t>(at)] = group.count;
    first += group.choices.size();
    const KnapsackChoice& base = group.choices[static_cast<std::size_t>(at)];
    cost += base.cost * group.count;
    weight += base.weight * group.count;
    // The next vertex of the hull is the lighter choice in the flattest direction.
    double ratio_before = 0;
    for (;;) {
      const KnapsackChoice& from = group.choices[static_cast<std::size_t>(at)];
      std::int32_t next = -1;
      double best_ratio = kInfinity, best_saved = 0;
      for (std::size_t c = 0; c < group.choices.size(); ++c) {
        const double saved = from.weight - group.choices[c].weight;
        if (!(saved > 0)) continue;
        const double ratio = (group.choices[c].cost - from.cost) / saved;
        if (ratio < best_ratio || (ratio == best_ratio && saved > best_saved)) {
          next = static_cast<std::int32_t>(c);
          best_ratio = ratio;
          best_saved = saved;
        }
      }
      if (next < 0) break;
      ratio_before = std::max(ratio_before, best_ratio);
      steps_.push_back({ratio_before, best_ratio * best_saved, best_saved,
                        static_cast<std::int32_t>(g), at, next});
      at = next;
    }
  }
  tight_ = false;
  price_ = 0;
  bound_ = cost_ = cost;
  double need = weight - capacity * kAboveRounding;
  if (need <= 0) return true;
  tight_ = true;
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.ratio < b.ratio; });
  // Offsets of the groups' choices; found again by walking as there are few groups.
  std::vector<std::size_t> offset(groups.size(), 0);
  for (std::size_t g = 1; g < groups.size(); ++g) {
    offset[g] = offset[g - 1] + groups[g - 1].choices.size();
  }
  for (const Step& step : steps_) {
    const auto group = static_cast<std::size_t>(step.group);
    const double count = groups[group].count;
    std::int32_t* counts = selection_.data() + offset[group];
    if (need > step.saved * count) {
      need -= step.saved * count;
      cost += step.cost * count;
      counts[step.to] += groups[group].count;
      counts[step.from] -= groups[group].count;
      continue;
    }
    bound_ = cost + step.cost * (need / step.saved);
    price_ = step.cost / step.saved;
    const double whole = std::clamp(std::ceil(need / step.saved), 1.0, count);
    counts[step.to] += static_cast<std::int32_t>(whole);
    counts[step.from] -= static_cast<std::int32_t>(whole);
    cost_ = cost + step.cost * whole;
    return true;
  }
  return false;
}

KnapsackAnswer Knapsack::at_most(std::span<const KnapsackGroup> groups, double capacity,
                                 double limit) {
  if (!relax(groups, capacity) || bound_ > limit) return KnapsackAnswer::no;
  if (cost_ <= limit) return KnapsackAnswer::yes;
  return decide(groups, capacity, limit, true);
}

KnapsackAnswer Knapsack::cheapest(std::span<const KnapsackGroup> groups, double capacity) {
  if (!relax(groups, capacity)) return KnapsackAnswer::no;
  if (!tight_) return KnapsackAnswer::yes;
  const std::vector<std::int32_t> greedy_selection = selection_;
  const double greedy_cost = cost_;
  const KnapsackAnswer answer = decide(groups, capacity, greedy_cost, false);
  if (answer != KnapsackAnswer::yes) {
    // Rounding may hide even the greedy selection from the exact search.
    selection_ = greedy_selection;
    cost_ = greedy_cost;
  }
  return answer == KnapsackAnswer::unknown ? answer : KnapsackAnswer::yes;
}

KnapsackAnswer Knapsack::greedy(std::span<const KnapsackGroup> groups, double capacity) {
  return relax(groups, capacity) ? KnapsackAnswer::yes : KnapsackAnswer::no;
}

bool Knapsack::mix_choices(const KnapsackGroup& group, double budget) {
  const std::size_t choices = group.choices.size();
  double least = kInfinity;
  for (const KnapsackChoice& choice : group.choices) {
    least = std::min(least, choice.cost + price_ * choice.weight);
  }
  const auto reduced = [&](std::size_t c) {
    return std::max(0.0, group.choices[c].cost + price_ * group.choices[c].weight - least);
  };
  std::vector<std::size_t> free;
  for (std::size_t c = 0; c < choices; ++c) {
    if (reduced(c) <= budget) free.push_back(c);
  }
  // Depth-first over how many of the remaining items take each free choice; the last takes the
  // rest.
  std::vector<std::int32_t> counts(choices, 0);
  struct Level {
    std::int32_t left;
    double cost, weight, reduced;
  };
  std::vector<Level> path{{group.count, 0, 0, 0}};
  std::vector<std::int32_t> taken{-1};
  while (!path.empty()) {
    const std::size_t depth = path.size() - 1;
    const Level& level = path.back();
    const std::size_t choice = free[depth];
    const bool last = depth + 1 == free.size();
    std::int32_t& take = taken.back();
    take = last && take < 0 ? level.left : take + 1;
    const double over = level.reduced + reduced(choice) * take;
    if (take > level.left || over > budget) {
      counts[choice] = 0;
      path.pop_back();
      taken.pop_back();
      continue;
    }
    counts[choice] = take;
    const Level next{level.left - take, level.cost + group.choices[choice].cost * take,
                     level.weight + group.choices[choice].weight * take, over};
    if (next.left == 0) {
      if (mixes_.size() >= kMostMixes) return false;
      mixes_.push_back({next.cost, next.weight, next.reduced, mix_counts_.size()});
      mix_counts_.insert(mix_counts_.end(), counts.begin(), counts.end());
      counts[choice] = 0;
      if (last || take == level.left) {
        path.pop_back();
        taken.pop_back();
      }
      continue;
    }
    path.push_back(next);
    taken.push_back(-1);
  }
  return true;
}

KnapsackAnswer Knapsack::decide(std::span<const KnapsackGroup> groups, double capacity,
                                double limit, bool first) {
  // What exceeds the capacity by no more than rounding fits.
  const double fits = capacity * kAboveRounding;
  const double rounding = kRoundingShare * (std::abs(limit) + price_ * capacity);
  const double budget = std::max(0.0, limit - bound_) + rounding;
  // Least that the groups from each on weigh and cost, to drop what cannot be completed.
  std::vector<double> least_weight(groups.size() + 1, 0), least_cost(groups.size() + 1, 0);
  for (std::size_t g = groups.size(); g-- > 0;) {
    double weight = kInfinity, cost = weight;
    for (const KnapsackChoice& choice : groups[g].choices) {
      weight = std::min(weight, choice.weight);
      cost = std::min(cost, choice.cost);
    }
    least_weight[g] = least_weight[g + 1] + weight * groups[g].count;
    least_cost[g] = least_cost[g + 1] + cost * groups[g].count;
  }
  sums_.assign(1, {0, 0, 0, -1, -1});
  level_begin_.assign(1, 0);
  mixes_.clear();
  mix_counts_.clear();
  std::vector<Sum> next;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t first_mix = mixes_.size();
    if (!mix_choices(groups[g], budget)) return KnapsackAnswer::unknown;
    next.clear();
    for (std::size_t s = level_begin_.back(); s < sums_.size(); ++s) {
      const Sum& sum = sums_[s];
      for (std::size_t m = first_mix; m < mixes_.size(); ++m) {
        const Mix& mix = mixes_[m];
        const Sum grown{sum.cost + mix.cost, sum.weight + mix.weight, sum.reduced + mix.reduced,
                        static_cast<std::int32_t>(s), static_cast<std::int32_t>(m)};
        if (grown.reduced > budget || grown.weight + least_weight[g + 1] > fits ||
            grown.cost + least_cost[g + 1] > limit + rounding) {
          continue;
        }
        next.push_back(grown);
      }
    }
    std::sort(next.begin(), next.end(), [](const Sum& a, const Sum& b) {
      return std::tie(a.cost, a.weight, a.before, a.mix) <
             std::tie(b.cost, b.weight, b.before, b.mix);
    });
    level_begin_.push_back(sums_.size());
    double lightest = kInfinity;
    for (const Sum& sum : next) {
      if (sum.weight >= lightest) continue;
      lightest = sum.weight;
      sums_.push_back(sum);
    }
    if (sums_.size() == level_begin_.back()) return KnapsackAnswer::no;
    if (sums_.size() > kMostSums) return KnapsackAnswer::unknown;
  }
  // Sums are in order of cost, and all of the last level fit.
  const std::size_t best = level_begin_.back();
  if (first && sums_[best].cost > limit) return KnapsackAnswer::no;
  trace(groups, static_cast<std::int32_t>(best));
  return KnapsackAnswer::yes;
}

void Knapsack::trace(std::span<const KnapsackGroup> groups, std::int32_t last) {
  cost_ = sums_[static_cast<std::size_t>(last)].cost;
  std::size_t end = selection_.size();
  for (std::size_t g = groups.size(); g-- > 0;) {
    const Sum& sum = sums_[static_cast<std::size_t>(last)];
    const std::size_t choices = groups[g].choices.size();
    const std::size_t counts = mixes_[static_cast<std::size_t>(sum.mix)].counts;
    end -= choices;
    std::copy_n(mix_counts_.begin() + static_cast<std::ptrdiff_t>(counts), choices,
                selection_.begin() + static_cast<std::ptrdiff_t>(end));
    last = sum.before;
  }
}

}  // namespace braid
