#include "braid/chip/elimination.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace braid {
namespace {

constexpr int kMostSweeps = 100;

/// Costs of all values of some variables, the last one's changing fastest.
struct Table {
  std::vector<std::size_t> variables;  ///< Ascending.
  std::vector<RankedCost> costs;
};

/// What was decided for an eliminated variable, by the values of those that remained.
struct Decision {
  std::size_t variable = 0;
  std::vector<std::size_t> given;
  std::vector<std::uint16_t> value;
};

class Elimination {
 public:
  explicit Elimination(const PairwiseProblem& problem)
      : problem_(problem), tables_of_(problem.costs.size()), values_(problem.costs.size(), 0) {
    tables_.reserve(2 * problem.costs.size() + problem.pairs.size());
    for (std::size_t i = 0; i < problem.costs.size(); ++i) add(Table{{i}, problem.costs[i]});
    for (const PairwiseProblem::Pair& pair : problem.pairs) add(pair);
  }

  std::optional<std::vector<std::size_t>> run(std::size_t most_entries) {
    // By the size of the table that takes a variable's place, then by number.
    std::set<std::pair<std::size_t, std::size_t>> open;
    std::vector<std::size_t> entries(values_.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (values_of(i) == 1) continue;
      entries[i] = entries_of(neighbours(i), most_entries + 1);
      open.emplace(entries[i], i);
    }
    while (!open.empty()) {
      const auto [least, variable] = *open.begin();
      if (least > most_entries) return std::nullopt;
      open.erase(open.begin());
      for (const std::size_t neighbour : eliminate(variable)) {
        open.erase({entries[neighbour], neighbour});
        entries[neighbour] = entries_of(neighbours(neighbour), most_entries + 1);
        open.emplace(entries[neighbour], neighbour);
      }
    }
    std::vector<std::size_t> values(values_.size(), 0);
    for (auto decision = decisions_.rbegin(); decision != decisions_.rend(); ++decision) {
      values[decision->variable] = decision->value[index_of(decision->given, values)];
    }
    return values;
  }

 private:
  std::size_t values_of(std::size_t variable) const { return problem_.costs[variable].size(); }

  /// Variables that have one value are left out, which changes nothing of the costs' order.
  void add(Table table) {
    std::erase_if(table.variables, [this](std::size_t v) { return values_of(v) == 1; });
    for (const std::size_t variable : table.variables) {
      tables_of_[variable].push_back(tables_.size());
    }
    tables_.push_back(std::move(table));
  }

  void add(const PairwiseProblem::Pair& pair) {
    assert(pair.a != pair.b);
    if (pair.a < pair.b) {
      add(Table{{pair.a, pair.b}, pair.costs});
      return;
    }
    Table turned{{pair.b, pair.a}, {}};
    turned.costs.reserve(pair.costs.size());
    for (std::size_t b = 0; b < values_of(pair.b); ++b) {
      for (std::size_t a = 0; a < values_of(pair.a); ++a) {
        turned.costs.push_back(pair.costs[a * values_of(pair.b) + b]);
      }
    }
    add(std::move(turned));
  }

  std::vector<std::size_t> neighbours(std::size_t variable) const {
    std::vector<std::size_t> found;
    for (const std::size_t table : tables_of_[variable]) {
      const std::vector<std::size_t>& all = tables_[table].variables;
      found.insert(found.end(), all.begin(), all.end());
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase(found, variable);
    return found;
  }

  std::size_t entries_of(const std::vector<std::size_t>& variables, std::size_t most) const {
    std::size_t entries = 1;
    for (const std::size_t variable : variables) {
      entries *= values_of(variable);
      if (entries >= most) return most;
    }
    return entries;
  }

  std::size_t index_of(const std::vector<std::size_t>& variables,
                       const std::vector<std::size_t>& values) const {
    std::size_t index = 0;
    for (const std::size_t variable : variables) {
      index = index * values_of(variable) + values[variable];
    }
    return index;
  }

  /// Puts one table over its neighbours, which are the result, in place of a variable's.
  std::vector<std::size_t> eliminate(std::size_t variable) {
    Decision decision{variable, neighbours(variable), {}};
    std::vector<Table> with;
    const std::vector<std::size_t> used = std::move(tables_of_[variable]);
    with.reserve(used.size());
    for (const std::size_t table : used) with.push_back(std::move(tables_[table]));
    for (const std::size_t neighbour : decision.given) {
      std::erase_if(tables_of_[neighbour], [&used](std::size_t table) {
        return std::binary_search(used.begin(), used.end(), table);
      });
    }
    const std::size_t entries = entries_of(decision.given, ~std::size_t{0});
    Table rest{decision.given, {}};
    rest.costs.reserve(entries);
    decision.value.reserve(entries);
    std::vector<std::size_t>& values = values_;
    for (std::size_t entry = 0; entry < entries; ++entry) {
      std::size_t left = entry;
      for (auto at = decision.given.rbegin(); at != decision.given.rend(); ++at) {
        values[*at] = left % values_of(*at);
        left /= values_of(*at);
      }
      RankedCost best{};
      std::size_t best_value = 0;
      for (std::size_t value = 0; value < values_of(variable); ++value) {
        values[variable] = value;
        RankedCost cost{};
        for (const Table& table : with) {
          cost = cost + table.costs[index_of(table.variables, values)];
        }
        if (value == 0 || cost < best) {
          best = cost;
          best_value = value;
        }
      }
      rest.costs.push_back(best);
      decision.value.push_back(static_cast<std::uint16_t>(best_value));
    }
    add(std::move(rest));
    decisions_.push_back(std::move(decision));
    return decisions_.back().given;
  }

  const PairwiseProblem& problem_;
  std::vector<Table> tables_;                        ///< Those of eliminated variables are empty.
  std::vector<std::vector<std::size_t>> tables_of_;  ///< Of each variable, ascending.
  std::vector<Decision> decisions_;
  std::vector<std::size_t> values_;  ///< Of a table's variables, while one is filled.
};

}  // namespace

RankedCost operator+(const RankedCost& a, const RankedCost& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}

RankedCost cost_of(const PairwiseProblem& problem, const std::vector<std::size_t>& values) {
  RankedCost total{};
  for (std::size_t i = 0; i < values.size(); ++i) total = total + problem.costs[i][values[i]];
  for (const PairwiseProblem::Pair& pair : problem.pairs) {
    total = total + pair.costs[values[pair.a] * problem.costs[pair.b].size() + values[pair.b]];
  }
  return total;
}

std::optional<std::vector<std::size_t>> minimise(const PairwiseProblem& problem,
                                                 std::size_t most_entries) {
  return Elimination(problem).run(most_entries);
}

std::vector<std::size_t> descend(const PairwiseProblem& problem) {
  std::vector<std::size_t> values;
  values.reserve(problem.costs.size());
  for (const auto& costs : problem.costs) {
    values.push_back(
        static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin()));
  }
  std::vector<std::vector<const PairwiseProblem::Pair*>> touching(values.size());
  for (const PairwiseProblem::Pair& pair : problem.pairs) {
    touching[pair.a].push_back(&pair);
    touching[pair.b].push_back(&pair);
  }
  bool changed = true;
  for (int sweep = 0; sweep < kMostSweeps && changed; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t before = values[i];
      RankedCost best{};
      std::size_t best_value = 0;
      for (std::size_t value = 0; value < problem.costs[i].size(); ++value) {
        values[i] = value;
        RankedCost cost = problem.costs[i][value];
        for (const PairwiseProblem::Pair* pair : touching[i]) {
          cost =
              cost + pair->costs[values[pair->a] * problem.costs[pair->b].size() + values[pair->b]];
        }
        if (value == 0 || cost < best) {
          best = cost;
          best_value = value;
        }
      }
      values[i] = best_value;
      changed = changed || best_value != before;
    }
  }
  return values;
}

}  // namespace braid
