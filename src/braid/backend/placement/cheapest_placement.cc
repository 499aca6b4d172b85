#include "braid/backend/placement/cheapest_placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/hash_mix.h"
#include "braid/base/index.h"

namespace braid {
namespace {

/// Covered are all nodes before `first` and those of `behind`, which are greater.
struct Covered {
  std::int32_t first = 0;
  std::vector<std::int32_t> behind;
  friend bool operator==(const Covered&, const Covered&) = default;
};

struct CoveredHash {
  std::size_t operator()(const Covered& covered) const {
    HashMix mix;
    mix.add(static_cast<std::uint64_t>(covered.first));
    for (const std::int32_t node : covered.behind) mix.add(static_cast<std::uint64_t>(node));
    return mix.value();
  }
};

struct State {
  Covered covered;
  double cost_s = std::numeric_limits<double>::infinity();
  std::int64_t from = -1;  ///< The state before, and the candidate that led here.
  std::size_t candidate = 0;
  bool is_settled = false;
};

/// nullopt where the candidate holds what is covered.
std::optional<Covered> with(const Covered& covered, const std::vector<std::int32_t>& nodes) {
  std::vector<std::int32_t> all;
  all.reserve(covered.behind.size() + nodes.size());
  std::merge(covered.behind.begin(), covered.behind.end(), nodes.begin(), nodes.end(),
             std::back_inserter(all));
  if (std::adjacent_find(all.begin(), all.end()) != all.end()) return std::nullopt;
  Covered next{covered.first, {}};
  std::size_t used = 0;
  while (used < all.size() && all[used] == next.first) {
    ++used;
    ++next.first;
  }
  next.behind.assign(all.begin() + static_cast<std::ptrdiff_t>(used), all.end());
  return next;
}

class PlacementSearch {
 public:
  explicit PlacementSearch(const PlacementProblem& problem)
      : problem_(problem),
        by_first_(at(problem.node_count)),
        costs_s_(problem.candidates.size(), std::nan("")) {
    for (std::size_t c = 0; c < problem.candidates.size(); ++c) {
      by_first_[at(problem.candidates[c].nodes.front())].push_back(c);
    }
  }

  std::optional<Placement> run(std::int64_t most_states) {
    reach({0, {}}, 0, -1, 0);
    while (!open_.empty()) {
      const auto [cost_s, id] = open_.top();
      open_.pop();
      if (states_[at(id)].is_settled) continue;
      states_[at(id)].is_settled = true;
      if (++settled_ > most_states) {
        throw Error("placing operators on backends takes more states than its budget",
                    "raise the budget, or offer smaller candidates");
      }
      if (states_[at(id)].covered.first == problem_.node_count) return found(id);
      expand(id);
    }
    return std::nullopt;
  }

 private:
  double cost_of(std::size_t candidate) {
    double& cost_s = costs_s_[candidate];
    if (std::isnan(cost_s)) {
      cost_s = problem_.cost_s(candidate);
      ++asked_;
    }
    return cost_s + problem_.cost_per_kernel_s;
  }

  void expand(std::int64_t id) {
    const Covered covered = states_[at(id)].covered;
    for (const std::size_t candidate : by_first_[at(covered.first)]) {
      const auto next = with(covered, problem_.candidates[candidate].nodes);
      if (!next) continue;
      const double cost_s = states_[at(id)].cost_s + cost_of(candidate);
      if (std::isfinite(cost_s)) reach(*next, cost_s, id, candidate);
    }
  }

  void reach(const Covered& covered, double cost_s, std::int64_t from, std::size_t candidate) {
    const auto [place, is_new] =
        numbers_.try_emplace(covered, static_cast<std::int64_t>(states_.size()));
    if (is_new) states_.push_back({covered});
    State& state = states_[at(place->second)];
    if (cost_s >= state.cost_s) return;
    state.cost_s = cost_s;
    state.from = from;
    state.candidate = candidate;
    open_.push({cost_s, place->second});
  }

  Placement found(std::int64_t id) const {
    Placement placement{
        .candidates = {}, .cost_s = states_[at(id)].cost_s, .states = settled_, .asked = asked_};
    for (; states_[at(id)].from >= 0; id = states_[at(id)].from) {
      placement.candidates.push_back(states_[at(id)].candidate);
    }
    std::reverse(placement.candidates.begin(), placement.candidates.end());
    return placement;
  }

  using Open = std::pair<double, std::int64_t>;

  const PlacementProblem& problem_;
  std::vector<std::vector<std::size_t>> by_first_;
  std::vector<double> costs_s_;  ///< NaN where not asked for.
  std::vector<State> states_;
  std::unordered_map<Covered, std::int64_t, CoveredHash> numbers_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::int64_t settled_ = 0, asked_ = 0;
};

}  // namespace

std::optional<Placement> cheapest_placement(const PlacementProblem& problem,
                                            std::int64_t most_states) {
  return PlacementSearch(problem).run(most_states);
}

}  // namespace braid
