#include "braid/chip/traffic_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/chip/covering_program.h"
#include "braid/chip/fitting_sets.h"

namespace braid {
namespace {

constexpr double kClose = 2e-4;  // The program's right-hand side is up to 1e-4 too large.
constexpr double kAnyTraffic = -std::numeric_limits<double>::max();
constexpr std::size_t kColumnsAtOnce = 5;  // Of one root.
constexpr std::size_t kSetsToRound = 400;  // Likewise.

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

/// The best prices found, lowered so that they satisfy the dual of all sets: of each root by the
/// most that a set of it exceeds them.
std::vector<double> best_prices(const FittingSets& sets, std::size_t kernels, std::int64_t work) {
  std::vector<double> alone(kernels, 0);
  for (std::uint32_t i = 0; i < kernels; ++i) alone[i] = sets.alone(i, 0).traffic_bytes;
  CoveringProgram program(alone);
  std::vector<double> best, prices;
  double best_total = kAnyTraffic;
  for (bool more = true; more;) {
    more = program.solve(work - program.work());
    prices = program.prices();
    const double worth = kClose / 10 * sum_of(alone) / static_cast<double>(kernels);
    bool added = false;
    for (std::uint32_t root = 0; root < kernels; ++root) {
      const std::vector<FittingSet> found =
          sets.most_excess(root, program.prices(), 0, kColumnsAtOnce);
      if (found.empty()) continue;
      prices[root] -= found[0].excess_bytes;
      for (const FittingSet& set : found) {
        if (set.excess_bytes <= worth) break;
        program.add_column(set.kernels, set.traffic_bytes);
        added = true;
      }
    }
    const double total = sum_of(prices);
    if (total > best_total) {
      best_total = total;
      best = prices;
    }
    more = more && added && program.objective() - best_total > kClose * best_total;
  }
  // Sums of them in other orders are rounded otherwise.
  for (double& price : best) price -= 1e-9 * std::abs(price);
  return best;
}

}  // namespace

TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget) {
  TrafficFloors floors;
  const std::size_t kernels = tables.kernels.size();
  if (kernels > budget.kernels) return floors;
  const FittingSets sets(tables, budget.sets);
  if (!sets.complete()) return floors;
  floors.bytes = best_prices(sets, kernels, budget.work);
  std::vector<std::vector<FittingSet>> good(kernels);
  for (std::uint32_t root = 0; root < kernels; ++root) {
    good[root] = sets.most_excess(root, floors.bytes, kAnyTraffic, kSetsToRound);
    if (std::none_of(good[root].begin(), good[root].end(),
                     [](const FittingSet& set) { return set.kernels.size() == 1; })) {
      good[root].push_back(sets.alone(root, floors.bytes[root]));
    }
  }
  floors.order = round_sets(tables, good, budget.rounding);
  return floors;
}

}  // namespace braid
