#include "braid/backend/placement/evolution.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <random>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

struct Individual {
  Genes genes;
  double cost = 0;
};

class Evolution {
 public:
  Evolution(const std::vector<Genes>& seeds, int choices,
            const std::function<double(const Genes&)>& cost, const EvolutionOptions& options)
      : choices_(choices), cost_(cost), options_(options), random_(options.seed) {
    for (const Genes& each : seeds) people_.push_back({each, cost_of(each)});
    while (people_.size() < options.population) {
      Genes genes(seeds.front().size());
      for (std::int8_t& each : genes) each = any_choice();
      const double its_cost = cost_of(genes);
      people_.push_back({std::move(genes), its_cost});
    }
    sort();
  }

  Evolved run() {
    Evolved result{people_.front().genes, people_.front().cost, 0, {people_.front().cost}};
    for (std::size_t g = 0; g < options_.generations; ++g) {
      next_generation();
      result.best_cost_by_generation.push_back(people_.front().cost);
      if (people_.front().cost < result.cost) {
        result.best = people_.front().genes;
        result.cost = people_.front().cost;
      }
    }
    result.asked = known_.size();
    return result;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  bool happens(double probability) {
    return static_cast<double>(random_() >> 11U) * 0x1p-53 < probability;
  }
  std::int8_t any_choice() { return static_cast<std::int8_t>(below(at(choices_))); }

  double cost_of(const Genes& genes) {
    const auto [place, is_new] = known_.try_emplace(genes, 0);
    if (is_new) place->second = cost_(genes);
    return place->second;
  }

  void sort() {
    std::stable_sort(people_.begin(), people_.end(),
                     [](const Individual& a, const Individual& b) { return a.cost < b.cost; });
  }

  const Genes& parent() {
    std::size_t best = below(people_.size());
    for (std::size_t i = 1; i < options_.tournament; ++i)
      best = std::min(best, below(people_.size()));
    return people_[best].genes;
  }

  Genes child() {
    Genes genes = parent();
    if (happens(options_.crossover)) {
      const Genes& other = parent();
      std::size_t from = below(genes.size() + 1), to = below(genes.size() + 1);
      if (to < from) std::swap(from, to);
      for (std::size_t i = from; i < to; ++i) genes[i] = other[i];
    }
    for (std::int8_t& each : genes) {
      if (happens(options_.mutation)) each = any_choice();
    }
    // What is known already teaches nothing.
    for (int i = 0; i < 8 && known_.contains(genes); ++i) genes[below(genes.size())] = any_choice();
    return genes;
  }

  void next_generation() {
    const std::size_t elites = std::min(options_.elites, people_.size());
    std::vector<Individual> next(people_.begin(),
                                 people_.begin() + static_cast<std::ptrdiff_t>(elites));
    while (next.size() < people_.size()) {
      Genes genes = child();
      const double its_cost = cost_of(genes);
      next.push_back({std::move(genes), its_cost});
    }
    people_ = std::move(next);
    sort();
  }

  int choices_;
  const std::function<double(const Genes&)>& cost_;
  const EvolutionOptions& options_;
  std::mt19937_64 random_;
  std::vector<Individual> people_;  ///< The cheapest first.
  std::map<Genes, double> known_;
};

}  // namespace

Evolved evolved(const std::vector<Genes>& seeds, int choices,
                const std::function<double(const Genes&)>& cost, const EvolutionOptions& options) {
  assert(!seeds.empty() && !seeds.front().empty() && choices > 0);
  return Evolution(seeds, choices, cost, options).run();
}

}  // namespace braid
