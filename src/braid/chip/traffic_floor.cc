#include "braid/chip/traffic_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/chip/covering_program.h"
#include "braid/chip/fitting_sets.h"
#include "braid/chip/frontier_sets.h"
#include "braid/chip/linear_cuts.h"

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

constexpr double kNear = 0.005;       // Of the program's value that the best prices may be less.
constexpr double kFirstPrices = 0.8;  // Of what a known mapping moves.
constexpr double kHigherPrices = 1.3;

/// What each kernel moves alone.
std::vector<double> alone_bytes(const FrontierSets& sets, std::size_t kernels) {
  std::vector<double> bytes(kernels);
  for (std::uint32_t i = 0; i < kernels; ++i) bytes[i] = sets.traffic_bytes({i});
  return bytes;
}

/// The partitions of a mapping that is found at once.
std::vector<std::vector<std::uint32_t>> known_partitions(const MapperTables& tables) {
  std::int64_t looked_at = 0;
  const LinearCuts cuts = find_cuts(tables, 0, 0, looked_at);
  std::vector<std::vector<std::uint32_t>> partitions;
  auto begin = cuts.order.begin();
  for (const std::uint32_t end : cuts.ends) {
    partitions.emplace_back(begin, cuts.order.begin() + end);
    begin = cuts.order.begin() + end;
  }
  return partitions;
}

/// Prices of FrontierSets, found in the same way. Far too high ones would meet far too large sets:
/// none is higher than `limits` until those that reach them raise these, and sets are looked for
/// at the mean of the program's prices and of the ones that did best so far.
class FrontierPrices {
 public:
  FrontierPrices(const MapperTables& tables, const FrontierSets& sets, std::int64_t work)
      : sets_(sets), work_left_(work), alone_(alone_bytes(sets, tables.kernels.size())) {
    double known = 0;
    for (std::vector<std::uint32_t>& partition : known_partitions(tables)) {
      const double bytes = sets.traffic_bytes(partition);
      known += bytes;
      ++partitions_;
      if (partition.size() > 1) columns_.push_back({std::move(partition), bytes, 0});
    }
    const double share = known > 0 ? std::min(1.0, kFirstPrices * known / sum_of(alone_)) : 1.0;
    limits_ = alone_;
    for (double& limit : limits_) limit *= share;
    centre_ = limits_;
  }

  std::vector<double> best() {
    do {
      solve();
    } while (work_left_ > 0 && raise_limits());
    for (double& price : best_) price -= 1e-9 * std::abs(price);
    return best_;
  }

 private:
  /// At the present limits.
  void solve() {
    CoveringProgram program(limits_);
    for (const FittingSet& column : columns_)
      program.add_column(column.kernels, column.traffic_bytes);
    for (bool more = true; more && work_left_ > 0;) {
      const std::int64_t before = program.work();
      program.solve(work_left_);
      work_left_ -= program.work() - before + sets_.work();
      std::vector<double> prices = program.prices();
      for (std::size_t i = 0; i < prices.size(); ++i) {
        prices[i] = std::min((prices[i] + centre_[i]) / 2, alone_[i]);
      }
      more = price(prices, program) && program.objective() - best_total_ > kNear * best_total_;
    }
  }

  /// Whether a set that exceeds the program's prices was found at the given ones.
  bool price(const std::vector<double>& prices, CoveringProgram& program) {
    const double worth = kClose / 10 * sum_of(alone_) / static_cast<double>(alone_.size());
    std::vector<double> lowered = prices;
    double most = 0;
    bool added = false;
    const std::vector<FittingSet> found = sets_.most_excess(prices);
    for (std::uint32_t i = 0; i < found.size(); ++i) {
      const FittingSet& set = found[i];
      if (set.kernels.empty()) continue;
      lowered[i] -= std::max(0.0, set.excess_bytes);
      most = std::max(most, set.excess_bytes);
      double excess = -set.traffic_bytes;
      for (const std::uint32_t kernel : set.kernels) excess += program.prices()[kernel];
      if (excess <= worth) continue;
      program.add_column(set.kernels, set.traffic_bytes);
      columns_.push_back(set);
      added = true;
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

  bool raise_limits() {
    bool raised = false;
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      if (limits_[i] >= alone_[i] || best_[i] < limits_[i] * 0.99) continue;
      limits_[i] = std::min(limits_[i] * kHigherPrices, alone_[i]);
      raised = true;
    }
    return raised;
  }

  const FrontierSets& sets_;
  std::int64_t work_left_;
  double partitions_ = 0;
  std::vector<double> alone_, limits_, centre_, best_;
  double best_total_ = kAnyTraffic, best_merit_ = kAnyTraffic;
  std::vector<FittingSet> columns_;
};

}  // namespace

TrafficFloors traffic_floors(const MapperTables& tables, const TrafficFloorBudget& budget) {
  TrafficFloors floors;
  const std::size_t kernels = tables.kernels.size();
  if (kernels > budget.kernels) return floors;
  const FittingSets sets(tables, budget.sets);
  if (!sets.complete()) {
    const FrontierSets more(tables, budget.frontier);
    if (more.complete()) floors.bytes = FrontierPrices(tables, more, budget.frontier_work).best();
    return floors;
  }
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
