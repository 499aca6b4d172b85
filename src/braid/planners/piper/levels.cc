#include "braid/planners/piper/levels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/infinity.h"
#include "braid/base/pareto_front.h"
#include "braid/base/rounding.h"
#include "braid/planners/piper/bisection.h"
#include "braid/planners/piper/tables.h"

namespace braid {
namespace {

/// From the quick bound up, few of them: each is a whole dynamic program over the levels.
constexpr RisingSteps kLevelSteps{0.05, 3, 1e4};
constexpr std::int64_t kNever = std::int64_t{1} << 40;

/// What the levels above the lowest see of the problem: weights and tensors in bytes.
PiperProblem bytes_alone(const PiperProblem& problem) {
  PiperProblem bytes = problem;
  for (PiperNode& node : bytes.nodes) {
    PiperOption weights;
    weights.parameter_bytes = piper_weight_bytes(node);
    node.degrees = {{1, {weights}}};
  }
  for (PiperEdge& edge : bytes.edges) edge.bytes = whole_bytes(edge);
  bytes.bandwidth_bytes = 1;
  bytes.levels.clear();
  return bytes;
}

/// A degree that a superstage may have, among `product` copies of what is around it.
struct Degree {
  std::int64_t dp = 1;
  double share = 1, sync = 0;
};

class Levels {
 public:
  Levels(const PiperProblem& problem, const DownsetLattice& prefixes, std::int64_t most_work)
      : problem_(problem),
        pricer_(problem),
        levels_(problem.levels.size()),
        sets_(prefixes.size()),
        most_sum_(std::min(problem.devices, problem.micro_batches)),
        most_work_(most_work),
        tables_(problem, prefixes),
        bytes_problem_(bytes_alone(problem)),
        bytes_tables_(bytes_problem_, prefixes),
        degrees_(levels_),
        known_(levels_),
        fronts_(levels_, std::vector<std::vector<Cell>>(sets_)) {
    const std::size_t tps = tables_.degrees().size();
    stages_.resize(sets_ * sets_ * tps);
    borders_.assign(sets_ * sets_, 0);
    for (std::size_t inner = 0; inner < sets_; ++inner) {
      for (std::size_t outer = inner + 1; outer < sets_; ++outer) {
        if (!tables_.is_subset(inner, outer)) continue;
        borders_[pair(inner, outer)] = bytes_tables_.sums(inner, outer, 0).time;
        for (std::size_t t = 0; t < tps; ++t) {
          stages_[pair(inner, outer) * tps + t] =
              tables_.sums(inner, outer, static_cast<std::int32_t>(t));
        }
      }
    }
    for (std::size_t set = 0; set < sets_; ++set) {
      weights_.push_back(set == 0 ? 0 : bytes_tables_.sums(0, set, 0).sync_time);
    }
  }

  /// No threshold below can be kept.
  double least_limit() const { return tables_.least_limit(most_sum_); }

  /// Stages and superstages that keep the limit; nullopt when there are none.
  std::optional<PiperSolution> keep(double limit) {
    limit_ = limit;
    for (auto& rows : known_) rows.clear();
    PiperSolution solution;
    const std::size_t top = levels_ - 1;
    fill(top, 0, 0, 1);
    if (exhausted() || least_sum_of(fronts_[top][sets_ - 1]) > most_sum_) {
      return std::nullopt;
    }
    trace(top, 0, sets_ - 1, 0, 1, solution);
    std::int64_t suffix = 0;
    for (std::size_t s = solution.stages.size(); s-- > 0;) {
      PiperStage& stage = solution.stages[s];
      stage.suffix = suffix += stage.dp;
      pricer_.price(stage);
    }
    solution.time = 0;
    for (const PiperStage& stage : solution.stages) {
      solution.time = std::max(solution.time, stage.time);
    }
    for (PiperSuperstage& superstage : solution.superstages) {
      price_piper_superstage(problem_, solution.stages, superstage);
      solution.time = std::max(solution.time, superstage.time);
    }
    return solution;
  }

  bool exhausted() const { return most_work_ > 0 && work_ >= most_work_; }
  bool proven() const { return tables_.proven(); }
  std::int64_t work() const { return work_; }

 private:
  /// Superstages for a set's last layers, up to an outer set: of the level's devices, and of
  /// replicas on one device of the level above.
  struct Cell : PiperUse {
    std::size_t suffix = 0;  ///< Set behind the first superstage.
    std::size_t rest_cell = 0;
    std::size_t degree = 0;  ///< Tensor-parallel; on the lowest level.
    Degree how;
  };
  /// Least sums of replicas for the sets from one suffix on to each outer one.
  using Row = std::vector<std::int64_t>;

  std::size_t pair(std::size_t inner, std::size_t outer) const { return outer * sets_ + inner; }

  /// Ascending; those that the micro-batches and the level's devices allow.
  const std::vector<Degree>& degrees(std::size_t level, std::int64_t product) {
    const auto [found, is_new] = degrees_[level].try_emplace(product);
    if (!is_new) return found->second;
    const std::int64_t most =
        std::min({problem_.levels[level].devices, problem_.micro_batches / product,
                  problem_.most_dp / product});
    for (std::int64_t dp = 1; dp <= most; ++dp) {
      const std::int64_t all = product * dp;
      if (problem_.rules.split == PiperSplit::even && problem_.micro_batches % all != 0) continue;
      if (level == 0 && (all < problem_.least_dp || all % problem_.dp_multiple != 0)) continue;
      found->second.push_back(
          {dp, piper_share(problem_, all), piper_sync_factor(problem_, all, dp)});
    }
    return found->second;
  }

  static std::int64_t least_sum_of(const std::vector<Cell>& front) {
    std::int64_t least = kNever;
    for (const Cell& cell : front) least = std::min(least, cell.replicas);
    return least;
  }

  /// Fills the level's fronts for the layers outside of `inner`, to run `product` times, with
  /// `behind` micro-batches in flight behind each copy.
  void fill(std::size_t level, std::size_t inner, std::int64_t behind, std::int64_t product) {
    std::vector<std::vector<Cell>>& fronts = fronts_[level];
    for (std::size_t set = inner; set < sets_; ++set) fronts[set].clear();
    fronts[inner].push_back({});
    for (std::size_t set = inner; set + 1 < sets_ && !exhausted(); ++set) {
      if (fronts[set].empty()) continue;
      if (level == 0) {
        put_stages(set, behind, product);
      } else {
        put_superstages(level, set, behind, product);
      }
    }
  }

  /// Fewest devices of the level that the layers between two sets take.
  double least_devices(std::size_t level, std::size_t inner, std::size_t outer,
                       std::int64_t product) const {
    double below = limit_ * static_cast<double>(product) * kAboveTolerance;
    for (std::size_t l = 0; l < level; ++l) {
      below *= static_cast<double>(problem_.levels[l].devices);
    }
    return std::max(0.0, tables_.least_work(outer) - tables_.least_work(inner)) / below;
  }

  /// Puts every stage in front of what the lowest level has for a set.
  void put_stages(std::size_t set, std::int64_t behind, std::int64_t product) {
    std::vector<std::vector<Cell>>& fronts = fronts_[0];
    const std::vector<Cell>& suffixes = fronts[set];
    const std::vector<Degree>& dps = degrees(0, product);
    const std::int64_t most_devices = problem_.levels[0].devices, most_sum = most_sum_ / product;
    std::int64_t least_used = most_devices;
    for (const Cell& suffix : suffixes) least_used = std::min(least_used, suffix.devices);
    const std::size_t tps = tables_.degrees().size();
    for (std::size_t outer = set + 1; outer < sets_; ++outer) {
      if (!tables_.is_subset(set, outer)) continue;
      if (least_devices(0, set, outer, product) > static_cast<double>(most_devices - least_used)) {
        continue;
      }
      for (std::size_t t = 0; t < tps; ++t) {
        PiperStageSums& stage = stages_[pair(set, outer) * tps + t];
        if (!stage.possible) continue;
        const std::int64_t tp = tables_.degrees()[t];
        const auto keeps = [&](const Degree& how) {
          return how.share * stage.time + how.sync * stage.sync_time <= limit_;
        };
        std::size_t first = 0;
        while (first < dps.size() && dps[first].dp * tp <= most_devices && !keeps(dps[first])) {
          ++first;
        }
        for (std::size_t r = 0; r < suffixes.size(); ++r) {
          const Cell& suffix = suffixes[r];
          for (std::size_t d = first; d < dps.size(); ++d) {
            const Degree& how = dps[d];
            const std::int64_t devices = suffix.devices + how.dp * tp,
                               sum = suffix.replicas + how.dp;
            if (devices > most_devices || sum > most_sum ||
                is_dominated(fronts[outer], PiperUse{devices, sum}, PiperUse::no_worse)) {
              break;
            }
            ++work_;
            const std::int64_t in_flight = 1 + (behind + suffix.replicas + how.dp - 1) / how.dp;
            if (!keeps(how) || !tables_.keeps(stage, how.share, how.sync, in_flight, limit_)) {
              continue;
            }
            put_in_front(fronts[outer], Cell{{devices, sum}, set, r, t, how}, PiperUse::no_worse);
            break;
          }
        }
      }
    }
  }

  /// Puts every superstage in front of what a level has for a set.
  void put_superstages(std::size_t level, std::size_t set, std::int64_t behind,
                       std::int64_t product) {
    std::vector<std::vector<Cell>>& fronts = fronts_[level];
    const std::int64_t most_devices = problem_.levels[level].devices;
    const double bandwidth = problem_.levels[level].bandwidth_bytes;
    for (std::size_t r = 0; r < fronts[set].size(); ++r) {
      const Cell suffix = fronts[set][r];
      for (const Degree& how : degrees(level, product)) {
        const std::int64_t devices = suffix.devices + how.dp;
        if (devices > most_devices) break;
        ++work_;
        const std::int64_t copies = product * how.dp;
        const auto keeps = [&](std::size_t outer) {
          return (how.share * borders_[pair(set, outer)] +
                  how.sync * (weights_[outer] - weights_[set])) /
                         bandwidth * (1 - kLastDigits) <=
                     limit_ &&
                 least_devices(level, set, outer, product) <= static_cast<double>(how.dp);
        };
        const auto useful = [&](const Row& row, std::size_t outer) {
          const std::int64_t sum = suffix.replicas + how.dp * row[outer - set];
          return sum * product <= most_sum_ && tables_.is_subset(set, outer) && keeps(outer) &&
                 !is_dominated(fronts[outer], PiperUse{devices, sum}, PiperUse::no_worse);
        };
        // With nothing behind it the sums are least: often already too many.
        const Row& least = least_sums(level - 1, set, 0, copies);
        bool any = false;
        for (std::size_t outer = set + 1; outer < sets_ && !any; ++outer) {
          any = useful(least, outer);
        }
        if (!any || exhausted()) continue;
        const Row& row =
            least_sums(level - 1, set, (behind + suffix.replicas + how.dp - 1) / how.dp, copies);
        for (std::size_t outer = set + 1; outer < sets_; ++outer) {
          if (!useful(row, outer)) continue;
          const std::int64_t sum = suffix.replicas + how.dp * row[outer - set];
          put_in_front(fronts[outer], Cell{{devices, sum}, set, r, 0, how}, PiperUse::no_worse);
        }
      }
    }
  }

  const Row& least_sums(std::size_t level, std::size_t inner, std::int64_t behind,
                        std::int64_t product) {
    auto& rows = known_[level][{inner, product}];
    const auto next = rows.lower_bound(behind);
    if (next != rows.end() && next->first == behind) return next->second;
    // More in flight is never better: between equal rows all are.
    if (next != rows.end() && next != rows.begin()) {
      const auto before = std::prev(next);
      if (before->second == next->second) return next->second;
    }
    fill(level, inner, behind, product);
    Row row;
    row.reserve(sets_ - inner);
    for (std::size_t outer = inner; outer < sets_; ++outer) {
      row.push_back(least_sum_of(fronts_[level][outer]));
    }
    return rows.emplace(behind, std::move(row)).first->second;
  }

  /// Appends the stages of one copy of the layers between two sets; the level's fronts are filled
  /// again but for the top level's.
  void trace(std::size_t level, std::size_t inner, std::size_t outer, std::int64_t behind,
             std::int64_t product, PiperSolution& solution) {
    if (level + 1 < levels_) fill(level, inner, behind, product);
    struct Part {
      std::size_t set;
      Cell cell;
      std::int64_t behind;
    };
    std::vector<Part> parts;
    const std::vector<Cell>& front = fronts_[level][outer];
    auto at = static_cast<std::size_t>(
        std::min_element(front.begin(), front.end(),
                         [](const Cell& a, const Cell& b) { return a.replicas < b.replicas; }) -
        front.begin());
    for (std::size_t set = outer; set != inner;) {
      const Cell& cell = fronts_[level][set][at];
      at = cell.rest_cell;
      parts.push_back({set, cell, behind + fronts_[level][cell.suffix][at].replicas});
      set = cell.suffix;
    }
    for (const Part& part : parts) {
      const Cell& cell = part.cell;
      const std::int64_t copies = product * cell.how.dp;
      if (level == 0) {
        const std::int64_t in_flight = 1 + (part.behind + cell.how.dp - 1) / cell.how.dp;
        const std::size_t tps = tables_.degrees().size();
        solution.stages.push_back(
            tables_.choose(stages_[pair(cell.suffix, part.set) * tps + cell.degree], cell.how.share,
                           cell.how.sync, in_flight));
        solution.stages.back().dp = copies;
        solution.stages.back().local_dp = cell.how.dp;
        continue;
      }
      const std::size_t number = solution.superstages.size();
      const auto first = static_cast<std::int32_t>(solution.stages.size());
      solution.superstages.push_back(
          {static_cast<std::int32_t>(level), first, 0, cell.how.dp, copies, 0});
      trace(level - 1, cell.suffix, part.set, (part.behind + cell.how.dp - 1) / cell.how.dp, copies,
            solution);
      solution.superstages[number].count =
          static_cast<std::int32_t>(solution.stages.size()) - first;
    }
  }

  const PiperProblem& problem_;
  PiperStagePricer pricer_;
  std::size_t levels_, sets_;
  std::int64_t most_sum_, most_work_, work_ = 0;
  double limit_ = kInfinity;
  PiperTables tables_;
  PiperProblem bytes_problem_;
  PiperTables bytes_tables_;
  std::vector<std::map<std::int64_t, std::vector<Degree>>> degrees_;  ///< [level]: by product.
  /// [level]: by suffix and product, by micro-batches behind.
  std::vector<std::map<std::pair<std::size_t, std::int64_t>, std::map<std::int64_t, Row>>> known_;
  std::vector<std::vector<std::vector<Cell>>> fronts_;  ///< [level][set]
  std::vector<PiperStageSums> stages_;
  std::vector<double> borders_, weights_;  ///< Bytes; of a pair of sets, of a suffix.
};

DownsetLattice prefixes_within(const PiperProblem& problem, PiperSearchLimits limits) {
  limits.downsets = std::min(limits.downsets, kMostPiperLevelDownsets);
  return piper_prefixes(problem, limits);
}

}  // namespace

PiperSolution solve_piper_levels(const PiperProblem& problem, const PiperSearchLimits& limits) {
  if (problem.rules.knapsack == PiperKnapsack::heuristic || problem.rules.sum == PiperSum::exact) {
    throw Error(
        "levels of a network go with the exact knapsack and a sum of data-parallel degrees "
        "of at most the micro-batches",
        "leave out --knapsack heuristic and --sum-of-dp exact");
  }
  if (!has_options(problem)) return {};
  const DownsetLattice prefixes = prefixes_within(problem, limits);
  Levels levels(problem, prefixes, limits.work);
  PiperSolution solution;
  PiperBisection bisection(levels, levels.least_limit(), limits.progress, solution);
  bisection.rise(kLevelSteps);
  bisection.halve(false);
  bisection.finish();
  solution.downsets = static_cast<std::int64_t>(prefixes.size());
  return solution;
}

std::optional<std::vector<PiperStage>> feasible_level_stages(const PiperProblem& problem,
                                                             const PiperSearchLimits& limits) {
  if (!has_options(problem)) return std::nullopt;
  Levels levels(problem, prefixes_within(problem, limits), limits.work);
  std::optional<PiperSolution> solution = levels.keep(kInfinity);
  if (!solution) return std::nullopt;
  return std::move(solution->stages);
}

}  // namespace braid
