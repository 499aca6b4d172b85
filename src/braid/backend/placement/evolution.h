#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace braid {

/// One choice out of a few for each place.
using Genes = std::vector<std::int8_t>;

struct EvolutionOptions {
  std::size_t population = 24;
  std::size_t generations = 40;
  /// The best that go on unchanged: with none a generation may lose what the one before has found.
  std::size_t elites = 2;
  std::size_t tournament = 3;  ///< The best of so many becomes a parent.
  double crossover = 0.5;      ///< Probability that two parents are mixed, between two places.
  double mutation = 0.08;      ///< Of each gene.
  std::uint64_t seed = 64;
};

struct Evolved {
  Genes best;
  double cost = 0;
  std::size_t asked = 0;                        ///< Different genes whose cost was asked for.
  std::vector<double> best_cost_by_generation;  ///< Of each generation alone.
};

/// The cheapest genes of an evolutionary search (Jeon 2024, section 2.3.3, with elitism, which is
/// missing there): generations of `population` by tournaments, crossover at two places and
/// mutation. Never costs more than the cheapest of `seeds`, of which there is at least one; all
/// are of one length, with choices below `choices`. `cost` is asked once for each genes, infinite
/// where they are not possible. Same input, same answer.
///
///   evolved({Genes(8, 0)}, 2, [](const Genes& g) { return 8.0 - std::count(...); }, {});
Evolved evolved(const std::vector<Genes>& seeds, int choices,
                const std::function<double(const Genes&)>& cost, const EvolutionOptions& options);

}  // namespace braid
