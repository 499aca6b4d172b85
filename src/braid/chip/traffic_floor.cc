#include "braid/chip/traffic_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "braid/base/rounding.h"
#include "braid/chip/covering_program.h"
#include "braid/chip/fitting_sets.h"
#include "braid/chip/frontier_sets.h"
#include "braid/chip/linear_cuts.h"
#include "braid/chip/partition_annealing.h"

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
    const double least_bytes = kClose / 10 * sum_of(alone) / static_cast<double>(kernels);
    bool added = false;
    for (std::uint32_t root = 0; root < kernels; ++root) {
      const std::vector<FittingSet> found =
          sets.most_excess(root, program.prices(), 0, kColumnsAtOnce);
      if (found.empty()) continue;
      prices[root] -= found[0].excess_bytes;
      for (const FittingSet& set : found) {
        if (set.excess_bytes <= least_bytes) break;
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
  for (double& price : best) price -= kToleranceShare * std::abs(price);
  return best;
}

constexpr double kNear = 0.003;        // Of the best prices that the program's value may be more,
constexpr double kNearLimited = 0.02;  // and while prices reach their limits.
constexpr double kFirstPrices = 0.8;   // Of what a known mapping moves.
constexpr double kHigherPrices = 1.4;
constexpr double kAtLimit = 0.999;
/// Which sets of FrontierSets are rounded: excess in shares of what a partition of the known
/// mapping moves above its floors, sets of a last kernel, and labels.
constexpr double kNearGood = 2;
constexpr FrontierQuery kGoodSets = {0, kSetsToRound, 3, 100, 0};

/// What each kernel moves alone.
std::vector<double> alone_bytes(const FrontierSets& sets, std::size_t kernels) {
  std::vector<double> bytes(kernels);
  for (std::uint32_t i = 0; i < kernels; ++i) bytes[i] = sets.traffic_bytes({i});
  return bytes;
}

LinearCuts known_cuts(const MapperTables& tables, const AnnealingBudget& budget) {
  std::int64_t looked_at = 0;
  LinearCuts cuts = find_cuts(tables, 0, 0, looked_at);
  if (cuts.ends.empty()) return cuts;
  LinearCuts annealed =
      cut_order(tables, anneal_partitions(tables, cuts.order, cuts.ends, budget), looked_at);
  return annealed.time_s < cuts.time_s ? annealed : cuts;
}

std::vector<FittingSet> partitions_of(const LinearCuts& cuts, const FrontierSets& sets,
                                      const std::vector<std::uint32_t>& place) {
  std::vector<FittingSet> partitions;
  partitions.reserve(cuts.ends.size());
  auto begin = cuts.order.begin();
  for (const std::uint32_t end : cuts.ends) {
    FittingSet partition;
    partition.kernels.assign(begin, cuts.order.begin() + end);
    std::sort(partition.kernels.begin(), partition.kernels.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place[a] < place[b]; });
    partition.traffic_bytes = sets.traffic_bytes(partition.kernels);
    partitions.push_back(std::move(partition));
    begin = cuts.order.begin() + end;
  }
  return partitions;
}

/// Prices of FrontierSets, found in the same way. Far too high ones would meet far too many sets:
/// none is higher than `limits` until those that reach them raise these, and sets are looked for
/// at the mean of the program's prices and of the ones that did best so far.
class FrontierPrices {
 public:
  FrontierPrices(const MapperTables& tables, const FrontierSets& sets,
                 const std::vector<FittingSet>& known, std::int64_t work)
      : sets_(sets), work_left_(work), alone_(alone_bytes(sets, tables.kernels.size())) {
    for (const FittingSet& partition : known) {
      known_bytes_ += partition.traffic_bytes;
      if (partition.kernels.size() > 1) columns_.push_back(partition);
    }
    partitions_ = static_cast<double>(known.size());
    const double share =
        known_bytes_ > 0 ? std::min(1.0, kFirstPrices * known_bytes_ / sum_of(alone_)) : 1.0;
    limits_ = alone_;
    for (double& limit : limits_) limit *= share;
    centre_ = limits_;
  }

  std::vector<double> best() {
    while (solve() && raise_limits()) continue;
    for (double& price : best_) price -= kToleranceShare * std::abs(price);
    return best_;
  }

  /// By last kernel, sets that exceed the best prices most or fall least short of them.
  std::vector<std::vector<FittingSet>> good_sets() const {
    FrontierQuery query = kGoodSets;
    if (partitions_ > 0) {
      query.least_excess_bytes =
          -kNearGood * std::max(0.0, known_bytes_ - sum_of(best_)) / partitions_;
    }
    query.traffic_per_sram = query_.traffic_per_sram;
    return sets_.exceeding(best_, query).sets;
  }

 private:
  /// At the present limits; false when no work is left.
  bool solve() {
    CoveringProgram program(limits_);
    for (const FittingSet& column : columns_)
      program.add_column(column.kernels, column.traffic_bytes);
    bool plainly = false;  // At the program's own prices.
    while (work_left_ > 0) {
      const std::int64_t before = program.work();
      program.solve(work_left_);
      work_left_ -= program.work() - before;
      program_prices_ = program.prices();
      std::vector<double> prices = program_prices_;
      for (std::size_t i = 0; i < prices.size(); ++i) {
        prices[i] = std::min(plainly ? prices[i] : (prices[i] + centre_[i]) / 2, alone_[i]);
      }
      const bool added = price(prices, program);
      const double near = any_at_limit() ? kNearLimited : kNear;
      if (program.objective() - best_total_ <= near * best_total_) return true;
      if (!added && plainly) return true;
      plainly = !added;
    }
    return false;
  }

  /// Whether a set that exceeds the program's prices was found at the given ones.
  bool price(const std::vector<double>& prices, CoveringProgram& program) {
    const double least_bytes = kClose / 10 * sum_of(alone_) / static_cast<double>(alone_.size());
    std::vector<double> lowered = prices;
    double most = 0;
    bool added = false;
    const FrontierAnswer found = sets_.exceeding(prices, query_);
    query_.traffic_per_sram = found.traffic_per_sram;
    work_left_ -= found.work;
    for (std::uint32_t i = 0; i < found.sets.size(); ++i) {
      if (found.sets[i].empty()) continue;
      lowered[i] -= found.sets[i].front().excess_bytes;
      most = std::max(most, found.sets[i].front().excess_bytes);
      for (const FittingSet& set : found.sets[i]) {
        double excess = -set.traffic_bytes;
        for (const std::uint32_t kernel : set.kernels) excess += program_prices_[kernel];
        if (excess <= least_bytes) continue;
        program.add_column(set.kernels, set.traffic_bytes);
        columns_.push_back(set);
        added = true;
      }
    }
    const double total = sum_of(lowered);
    if (total > best_total_) {
      best_total_ = total;
      best_ = std::move(lowered);
    }
    // What as many partitions as are known exceed the prices at most.
    const double merit = sum_of(prices) - partitions_ * most;
    if (merit > best_merit_) {
      best_merit_ = merit;
      centre_ = prices;
    }
    return added;
  }

  bool is_at_limit(std::size_t kernel) const {
    return limits_[kernel] < alone_[kernel] &&
           program_prices_[kernel] >= kAtLimit * limits_[kernel];
  }

  bool any_at_limit() const {
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      if (is_at_limit(i)) return true;
    }
    return false;
  }

  bool raise_limits() {
    bool raised = false;
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      if (!is_at_limit(i)) continue;
      limits_[i] = std::min(limits_[i] * kHigherPrices, alone_[i]);
      raised = true;
    }
    return raised;
  }

  const FrontierSets& sets_;
  std::int64_t work_left_;
  double partitions_ = 0, known_bytes_ = 0;
  std::vector<double> alone_, limits_, centre_, best_, program_prices_;
  double best_total_ = kAnyTraffic, best_merit_ = kAnyTraffic;
  std::vector<FittingSet> columns_;
  FrontierQuery query_;
};

/// Floors and an order where sets are too many to list.
TrafficFloors frontier_floors(const MapperTables& tables, const TrafficFloorBudget& budget) {
  TrafficFloors floors;
  const FrontierSets sets(tables, budget.frontier);
  if (!sets.complete()) return floors;
  const std::size_t kernels = tables.kernels.size();
  std::vector<std::uint32_t> place(kernels);
  for (std::uint32_t at = 0; at < kernels; ++at) place[tables.order[at]] = at;
  const LinearCuts known = known_cuts(tables, budget.annealing);
  const std::vector<FittingSet> partitions = partitions_of(known, sets, place);
  FrontierPrices prices(tables, sets, partitions, budget.frontier_work);
  floors.bytes = prices.best();
  std::vector<std::vector<FittingSet>> good(kernels);
  const auto add = [&](FittingSet set) {
    set.excess_bytes = -set.traffic_bytes;
    for (const std::uint32_t kernel : set.kernels) set.excess_bytes += floors.bytes[kernel];
    good[set.kernels.front()].push_back(std::move(set));
  };
  for (std::vector<FittingSet>& found : prices.good_sets()) {
    for (FittingSet& set : found) {
      if (set.kernels.size() > 1) add(std::move(set));
    }
  }
  for (const FittingSet& partition : partitions) {
    if (partition.kernels.size() > 1) add(partition);
  }
  for (std::uint32_t i = 0; i < kernels; ++i) {
    add({{i}, sets.traffic_bytes({i}), 0});
    std::stable_sort(good[i].begin(), good[i].end(), [](const FittingSet& a, const FittingSet& b) {
      return a.excess_bytes > b.excess_bytes;
    });
  }
  floors.order = round_sets(tables, good, budget.rounding);
  std::int64_t looked_at = 0;
  if (cut_order(tables, floors.order, looked_at).time_s > known.time_s) floors.order = known.order;
  return floors;
}

}  // namespace

TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget) {
  const std::size_t kernels = tables.kernels.size();
  if (kernels > budget.kernels) return {};
  const FittingSets sets(tables, budget.sets);
  if (!sets.complete()) return frontier_floors(tables, budget);
  TrafficFloors floors;
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
