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

  bool holds(std::int32_t node) const {
    return node < first || std::binary_search(behind.begin(), behind.end(), node);
  }
};

/// By value: the formats of those that are read later, where these are not the plain one alone; and
/// the formats that are wanted of those that are not computed yet, where there are any.
using Formats = std::vector<std::pair<std::int32_t, FormatSet>>;

struct Place {
  Covered covered;
  Formats formats;
  friend bool operator==(const Place&, const Place&) = default;
};

struct CoveredHash {
  std::size_t operator()(const Covered& covered) const {
    HashMix mix;
    mix.add(static_cast<std::uint64_t>(covered.first));
    for (const std::int32_t node : covered.behind) mix.add(static_cast<std::uint64_t>(node));
    return mix.value();
  }
};

struct PlaceHash {
  std::size_t operator()(const Place& place) const {
    HashMix mix;
    mix.add(CoveredHash()(place.covered));
    for (const auto& [value, set] : place.formats) {
      mix.add(static_cast<std::uint64_t>(value));
      mix.add(set);
    }
    return mix.value();
  }
};

struct State {
  Place place;
  double cost_s = std::numeric_limits<double>::infinity();
  std::int64_t from = -1;  ///< The state before, and what led here.
  std::size_t candidate = 0;
  std::vector<FormatTurn> turns;
  bool is_settled = false;
};

constexpr std::size_t no_candidate = std::numeric_limits<std::size_t>::max();

FormatSet formats_of(const Formats& formats, std::int32_t value, FormatSet otherwise) {
  for (const auto& [each, set] : formats) {
    if (each == value) return set;
  }
  return otherwise;
}

void set_formats(Formats& formats, std::int32_t value, FormatSet set) {
  const auto place =
      std::lower_bound(formats.begin(), formats.end(), value,
                       [](const auto& each, std::int32_t wanted) { return each.first < wanted; });
  if (place != formats.end() && place->first == value) {
    place->second = set;
  } else {
    formats.insert(place, {value, set});
  }
}

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

/// What values have become on the way to a next state.
struct Turned {
  Formats formats;
  double cost_s = 0;
  std::vector<FormatTurn> turns;
};

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

  std::optional<CheapestPlacement> run(std::int64_t most_states) {
    reach({{0, {}}, {}}, 0, -1, {no_candidate, {}});
    while (!open_.empty()) {
      const auto [cost_s, id] = open_.top();
      open_.pop();
      if (states_[at(id)].is_settled) continue;
      states_[at(id)].is_settled = true;
      if (is_dominated(id)) continue;
      if (++settled_ > most_states) {
        throw Error("placing operators on backends takes more states than its budget",
                    "raise the budget, or offer smaller candidates");
      }
      const Place& place = states_[at(id)].place;
      if (place.covered.first < problem_.node_count) {
        expand(id);
      } else if (place.formats.empty()) {
        return found(id);
      } else {
        finish(id);
      }
    }
    return std::nullopt;
  }

 private:
  struct Step {
    std::size_t candidate = no_candidate;
    std::vector<FormatTurn> turns;
  };

  double cost_of(std::size_t candidate) {
    double& cost_s = costs_s_[candidate];
    if (std::isnan(cost_s)) {
      cost_s = problem_.cost_s(candidate);
      ++asked_;
    }
    return cost_s + problem_.cost_per_kernel_s;
  }

  void expand(std::int64_t id) {
    const Place place = states_[at(id)].place;
    for (const std::size_t c : by_first_[at(place.covered.first)]) {
      const PlacementCandidate& candidate = problem_.candidates[c];
      const auto next = with(place.covered, candidate.nodes);
      if (!next) continue;
      const double cost_s = states_[at(id)].cost_s + cost_of(c);
      if (!std::isfinite(cost_s)) continue;
      for (Turned& turned : ways_through(place, *next, candidate)) {
        std::erase_if(turned.formats, [&](const auto& each) {
          return is_computed(each.first, *next) &&
                 (each.second == only_plain || !is_read_after(each.first, *next));
        });
        reach({*next, std::move(turned.formats)}, cost_s + turned.cost_s, id,
              {c, std::move(turned.turns)});
      }
    }
  }

  /// Outputs are wanted in the plain format.
  void finish(std::int64_t id) {
    const Place place = states_[at(id)].place;
    std::vector<Turned> ways{{place.formats, 0, {}}};
    for (const auto& [value, set] : place.formats) {
      ways = with_formats(ways, value, set, only_plain);
    }
    for (Turned& turned : ways) {
      reach({place.covered, {}}, states_[at(id)].cost_s + turned.cost_s, id,
            {no_candidate, std::move(turned.turns)});
    }
  }

  /// All ways to have what a candidate reads and what is wanted of what it writes.
  std::vector<Turned> ways_through(const Place& place, const Covered& next,
                                   const PlacementCandidate& candidate) const {
    std::vector<Turned> ways{{place.formats, 0, {}}};
    for (const FormatUse& use : candidate.reads) {
      const FormatSet bit = format_bit(use.format);
      if (is_computed(use.value, place.covered)) {
        ways = with_formats(ways, use.value, only_plain, bit);
      } else if (!is_computed(use.value, next)) {
        for (Turned& way : ways) {
          const FormatSet wanted = formats_of(way.formats, use.value, 0);
          set_formats(way.formats, use.value, static_cast<FormatSet>(wanted | bit));
        }
      }
    }
    for (const FormatUse& use : candidate.writes) {
      const FormatSet wanted = formats_of(place.formats, use.value, 0);
      for (Turned& way : ways) set_formats(way.formats, use.value, format_bit(use.format));
      ways = with_formats(ways, use.value, only_plain, wanted);
    }
    return ways;
  }

  /// Each way, with each way to have a value in `wanted` formats as well; `otherwise` are the
  /// value's formats where a way has none.
  std::vector<Turned> with_formats(const std::vector<Turned>& ways, std::int32_t value,
                                   FormatSet otherwise, FormatSet wanted) const {
    std::vector<Turned> next;
    for (const Turned& way : ways) {
      const FormatSet before = formats_of(way.formats, value, otherwise);
      for (const Acquisition& each : acquisitions(problem_.values, value, before, wanted)) {
        next.push_back(way);
        next.back().cost_s += each.cost_s;
        for (const auto& [from, to] : each.turns) next.back().turns.push_back({value, from, to});
        set_formats(next.back().formats, value, each.formats);
      }
    }
    return next;
  }

  bool is_computed(std::int32_t value, const Covered& covered) const {
    const std::int32_t producer = problem_.values.values[at(value)].producer;
    return producer < 0 || covered.holds(producer);
  }

  bool is_read_after(std::int32_t value, const Covered& covered) const {
    const PlacedValue& placed = problem_.values.values[at(value)];
    return placed.is_output ||
           std::any_of(placed.readers.begin(), placed.readers.end(),
                       [&](std::int32_t reader) { return !covered.holds(reader); });
  }

  /// Whether a settled state with the same nodes covered gets to the same formats as cheaply.
  bool is_dominated(std::int64_t id) {
    const State& state = states_[at(id)];
    const bool is_end =
        state.place.covered.first == problem_.node_count && state.place.formats.empty();
    if (problem_.values.values.empty() || is_end) return false;
    std::vector<std::int64_t>& settled = settled_at_[state.place.covered];
    for (const std::int64_t other : settled) {
      if (states_[at(other)].cost_s + turning_s(states_[at(other)].place, state.place) <=
          state.cost_s) {
        return true;
      }
    }
    settled.push_back(id);
    return false;
  }

  /// Seconds to have the formats of `to` as well as those of `from`, where the same is covered;
  /// infinite where more is wanted in `from`.
  double turning_s(const Place& from, const Place& to) const {
    double sum_s = 0;
    const auto add = [&](std::int32_t value) {
      const bool computed = is_computed(value, from.covered);
      const FormatSet otherwise = computed ? only_plain : 0;
      const FormatSet have = formats_of(from.formats, value, otherwise);
      const FormatSet there = formats_of(to.formats, value, otherwise);
      const auto both = static_cast<FormatSet>(have | there);
      if (computed) {
        sum_s += cheapest_acquisition(problem_.values, value, have, both).cost_s;
      } else if (both != there) {
        sum_s = std::numeric_limits<double>::infinity();
      }
    };
    for (const auto& [value, set] : to.formats) add(value);
    // What lies in other formats than the plain one here may be plain there.
    for (const auto& [value, set] : from.formats) {
      if (formats_of(to.formats, value, 0) == 0) add(value);
    }
    return sum_s;
  }

  void reach(Place place, double cost_s, std::int64_t from, Step step) {
    const auto [entry, is_new] =
        numbers_.try_emplace(std::move(place), static_cast<std::int64_t>(states_.size()));
    if (is_new) states_.push_back({.place = entry->first, .turns = {}});
    State& state = states_[at(entry->second)];
    if (cost_s >= state.cost_s) return;
    state.cost_s = cost_s;
    state.from = from;
    state.candidate = step.candidate;
    state.turns = std::move(step.turns);
    open_.push({cost_s, entry->second});
  }

  CheapestPlacement found(std::int64_t id) const {
    CheapestPlacement placement{.candidates = {},
                                .turns = {},
                                .cost_s = states_[at(id)].cost_s,
                                .states = settled_,
                                .asked = asked_};
    for (; states_[at(id)].from >= 0; id = states_[at(id)].from) {
      const State& state = states_[at(id)];
      if (state.candidate != no_candidate) placement.candidates.push_back(state.candidate);
      placement.turns.insert(placement.turns.begin(), state.turns.begin(), state.turns.end());
    }
    std::reverse(placement.candidates.begin(), placement.candidates.end());
    return placement;
  }

  using Open = std::pair<double, std::int64_t>;

  const PlacementProblem& problem_;
  std::vector<std::vector<std::size_t>> by_first_;
  std::vector<double> costs_s_;  ///< NaN where not asked for.
  std::vector<State> states_;
  std::unordered_map<Place, std::int64_t, PlaceHash> numbers_;
  std::unordered_map<Covered, std::vector<std::int64_t>, CoveredHash> settled_at_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::int64_t settled_ = 0, asked_ = 0;
};

}  // namespace

std::optional<CheapestPlacement> cheapest_placement(const PlacementProblem& problem,
                                                    std::int64_t most_states) {
  return PlacementSearch(problem).run(most_states);
}

}  // namespace braid
