#include "braid/chip/systolic/nest_mapper.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/least_threshold.h"
#include "braid/base/rounding.h"
#include "braid/chip/systolic/nest_bound.h"
#include "braid/chip/systolic/nest_deals.h"
#include "braid/chip/systolic/nest_steps.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

/// Searches the space of NestMapping by branch and bound: over bufferings, dealings, rounds of the
/// dimensions on the array and of the streamed one, then steps and what stays (nest_steps.h); see
/// each function for what it leaves out and why that is no better.
class NestSearch {
 public:
  NestSearch(const LoopNest& nest, const SystolicMachine& machine)
      : nest_(nest), machine_(machine), deals_(nest, machine), steps_(nest, deals_) {}

  MappedNest run() {
    // Most nests have a mapping at the bound itself; else, below a limit little is left to look at.
    const double bound = deals_.bound_of(deals_.bufferings()[0]);
    if (!search_below(bound * (1 + kLastDigits))) {
      deals_.bound_hbm();
      double least = kInfinity;
      for (const Buffering& buffering : deals_.bufferings()) {
        least = std::min(least, deals_.bound_of(buffering));
      }
      for (const double limit : {1.1, 1.5, 2.5, kInfinity}) {
        if (search_below(least * limit)) break;
      }
    }
    MappedNest mapped;
    mapped.bound_cycles = least_cycles(nest_, machine_);
    mapped.cost.cycles = kInfinity;
    if (best_cycles() < limit_) {
      mapped.status = NestStatus::optimal;
      mapped.mapping = steps_.best();
      mapped.cost = nest_cost(nest_, machine_, mapped.mapping).value();
    }
    return mapped;
  }

 private:
  double best_cycles() const { return steps_.best_cycles(); }

  void search_deals(const Buffering& buffering) {
    for (int f = 0; f < deals_.flows(); ++f) {
      const FlowTables& tables = deals_.tables(f);
      std::array<int, 4> log{};
      for (log[3] = 0; log[3] <= tables.most[3]; ++log[3]) {
        for (log[0] = 0; log[0] <= std::min(tables.most[0], deals_.doublings() - log[3]);
             ++log[0]) {
          search_deals(buffering, f, log);
        }
      }
    }
  }

  void search_deals(const Buffering& buffering, int f, std::array<int, 4> log) {
    const FlowTables& tables = deals_.tables(f);
    const int rest = deals_.doublings() - log[3] - log[0];
    log[1] = std::min(tables.most[1], rest);
    log[2] = std::min(tables.most[2], rest);
    if (!deals_.core_may_take_less(buffering, {f, log}, best_cycles())) return;
    for (log[1] = 0; log[1] <= std::min(tables.most[1], rest); ++log[1]) {
      for (log[2] = std::min(tables.most[2], rest - log[1]); log[2] >= 0; --log[2]) {
        if (!deals_.core_may_take_less(buffering, {f, log}, best_cycles())) break;
        if (deals_.may_take_less(buffering, {f, log}, best_cycles())) search(buffering, {f, log});
      }
    }
  }

  /// Whether there is a mapping below so many cycles; the best is then known.
  bool search_below(double cycles) {
    limit_ = cycles;
    steps_.set_limit(cycles);
    for (const Buffering& buffering : deals_.bufferings()) search(buffering);
    return best_cycles() < limit_;
  }

  void search(const Buffering& buffering) {
    if (!(deals_.bound_of(buffering) < best_cycles())) return;
    search(buffering, deals_.least_deal());
    if (!(deals_.bound_of(buffering) < best_cycles())) return;
    search_deals(buffering);
  }

  void search(const Buffering& buffering, const Deal& deal) {
    NestRounds path;
    path.buffering = &buffering;
    const FlowTables& tables = deals_.tables(deal.flow);
    path.flow = &tables;
    path.batch_cores = std::int64_t{1} << deal.log[kBatchDim];
    path.batch_rounds = quotient_up(nest_.batch, path.batch_cores);
    for (std::size_t d = 0; d < 3; ++d) {
      path.cores[d] = std::int64_t{1} << deal.log[d];
      path.shares[d] = quotient_up(path.flow->units.units[d], path.cores[d]);
      path.elements[d] = tables.elements[d][at(deal.log[d])];
    }
    path.streamed_least = static_cast<double>(
        std::max(path.shares[at(path.flow->units.streamed)], machine_.array.rows));
    path.least_core = deals_.least_core(deal);
    const int rows = path.flow->units.rows, columns = path.flow->units.columns;
    const double least_tile = static_cast<double>(
        std::min(deals_.sizes[at(columns)], path.flow->units.elements[at(columns)]));
    for_rounds(path, rows, [&] {
      // A window's tile may hold fewer words than its extents multiplied.
      const double widest =
          nest_.window.used ? kInfinity : path.buffering->l2_words / path.tile[at(rows)];
      if (widest < least_tile) return true;
      const double fewest = std::max(1.0, path.elements[at(columns)] / widest);
      if (!rounds_may_be_better(path, fewest, least_tile)) return true;
      const std::int64_t longest = static_cast<std::int64_t>(
          std::min(widest / static_cast<double>(path.flow->units.elements[at(columns)]),
                   static_cast<double>(path.shares[at(columns)])));
      for_rounds(
          path, columns,
          [&] {
            const auto turns = static_cast<double>(path.rounds[at(columns)]);
            if (rounds_may_be_better(path, turns, path.tile[at(columns)])) {
              search_stream(path);
              return true;
            }
            // Of more rounds, with smaller tiles.
            return rounds_may_be_better(path, turns, least_tile);
          },
          quotient_up(path.shares[at(columns)], std::max<std::int64_t>(1, longest)));
      return true;
    });
  }

  /// Whether the path's rounds of the rows with at least `column_rounds` of the columns, in tiles
  /// that are at least `column_tile` wide, can be better than what is known. A tile must fit the
  /// L2, which bounds how long it is along the streamed dimension.
  bool rounds_may_be_better(const NestRounds& path, double column_rounds,
                            double column_tile) const {
    if (nest_.window.used) return true;
    const FlowUnits& flow = path.flow->units;
    const double r = path.tile[at(flow.rows)], words = path.buffering->l2_words;
    const double longest = machine_.buffers.l2_per_operand
                               ? words / std::max(r, column_tile)
                               : (words - r * column_tile) / (r + column_tile);
    if (longest < 1) return false;
    const double stream_rounds = std::max(1.0, path.elements[at(flow.streamed)] / longest);
    const auto batch_rounds = static_cast<double>(path.batch_rounds);
    const double stationary = path.elements[at(flow.rows)] * path.elements[at(flow.columns)] *
                              (at(flow.streamed) == kOutputDim ? 2 : 1);
    const double core = std::max(
        path.least_core.passes *
                std::max(1.0, stream_rounds * static_cast<double>(machine_.array.rows) /
                                  path.streamed_least) +
            deals_.fill,
        path.least_core.l2 + batch_rounds * deals_.array_rate * stationary * (stream_rounds - 1));
    const double row_words =
        deals_.moved_words(at(flow.rows), static_cast<double>(path.rounds[at(flow.rows)]));
    const double column_words = deals_.moved_words(at(flow.columns), column_rounds);
    const double stream_words = deals_.moved_words(at(flow.streamed), stream_rounds);
    const double global = std::min({deals_.once[at(flow.rows)] + column_words + stream_words,
                                    row_words + deals_.once[at(flow.columns)] + stream_words,
                                    row_words + column_words + deals_.once[at(flow.streamed)]});
    return path.buffering->overlapped(core, global * deals_.global_rate,
                                      path.buffering->least_hbm_cycles) < best_cycles();
  }

  void set_rounds(NestRounds& path, int d, std::int64_t rounds) const {
    path.rounds[at(d)] = rounds;
    path.piece[at(d)] = quotient_up(path.shares[at(d)], rounds);
    path.tile[at(d)] = static_cast<double>(
        std::min(deals_.sizes[at(d)], path.piece[at(d)] * path.flow->units.elements[at(d)]));
  }

  /// Calls `visit` for the numbers of rounds of dimension d, ascending, while it returns true. Of
  /// those with equal largest pieces only the fewest: with more, no tile is smaller and nothing
  /// passes less often.
  template <typename Visit>
  void for_rounds(NestRounds& path, int d, const Visit& visit, std::int64_t first = 1) const {
    const std::int64_t most = path.flow->units.units[at(d)] / path.cores[at(d)];
    const std::int64_t share = path.shares[at(d)];
    for (std::int64_t rounds = first; rounds <= most;) {
      set_rounds(path, d, rounds);
      const std::int64_t piece = path.piece[at(d)];
      if (!visit()) return;
      rounds = piece == 1 ? share + 1 : quotient_up(share, piece - 1);  // As next_pieces().
    }
  }

  bool l2_fits(const NestRounds& path) const {
    double words = 0;
    for (int operand = 0; operand < kNestDims; ++operand) {
      const double own = tile_words(nest_, static_cast<NestOperand>(operand), path.tile);
      words = machine_.buffers.l2_per_operand ? std::max(words, own) : words + own;
    }
    return words <= path.buffering->l2_words;
  }

  /// Fewest rounds of the streamed dimension with which the tiles fit the L2; 0 where none.
  std::int64_t fewest_stream_rounds(NestRounds& path) const {
    const int d = path.flow->units.streamed;
    const std::int64_t most = path.flow->units.units[at(d)] / path.cores[at(d)];
    if (!nest_.window.used) {
      const double a = path.tile[at(path.flow->units.rows)],
                   b = path.tile[at(path.flow->units.columns)];
      const double words = path.buffering->l2_words;
      if (a * b > words) return 0;
      const double longest =
          machine_.buffers.l2_per_operand ? words / std::max(a, b) : (words - a * b) / (a + b);
      if (longest < 1) return 0;
      const double share = static_cast<double>(path.shares[at(d)]);
      if (longest >= share) return 1;
      const std::int64_t rounds =
          quotient_up(path.shares[at(d)], static_cast<std::int64_t>(longest));
      return rounds <= most ? rounds : 0;
    }
    const std::int64_t fewest = first_where<std::int64_t>(1, most + 1, [&](std::int64_t rounds) {
      set_rounds(path, d, rounds);
      return l2_fits(path);
    });
    return fewest <= most ? fewest : 0;
  }

  void search_stream(NestRounds& path) {
    const std::int64_t first = fewest_stream_rounds(path);
    if (first == 0) return;
    // Rounds of one streamed element leave most room for the others.
    set_rounds(path, path.flow->units.streamed, path.shares[at(path.flow->units.streamed)]);
    if (!steps_.may_be_better(path, deals_.core_cycles(path.least_core), 0)) return;
    for_rounds(
        path, path.flow->units.streamed,
        [&] {
          set_core_cycles(path);
          for (int d = 0; d < kNestDims; ++d) {
            path.swept[at(d)] = swept_words(nest_, static_cast<NestOperand>(d), path.rounds);
          }
          // All terms but HBM's grow with the rounds.
          const double global = steps_.least_global_cycles(path);
          if (!steps_.is_better(path, global, path.buffering->least_hbm_cycles)) return false;
          if (steps_.may_be_better(path, path.core_cycles, global)) steps_.search(path);
          return true;
        },
        first);
  }

  /// Cycles of the array and of L2, with the folds that pass fewest words.
  void set_core_cycles(NestRounds& path) const {
    const FlowUnits& flow = path.flow->units;
    const auto batch_rounds = static_cast<double>(path.batch_rounds);
    double rounds = batch_rounds;
    for (const std::int64_t of_dim : path.rounds) rounds *= static_cast<double>(of_dim);
    const double passes = static_cast<double>(path.shares[at(flow.rows)]) *
                          static_cast<double>(path.shares[at(flow.columns)]) *
                          streamed_cycles(path.shares[at(flow.streamed)],
                                          path.rounds[at(flow.streamed)], machine_.array.rows);
    path.core_cycles =
        batch_rounds * passes + deals_.fill * (path.buffering->l2_doubled ? 1 : rounds);
    path.folds = {1, 1};
    if (!(machine_.array.words_per_cycle > 0)) return;
    double least = kInfinity;
    const std::int64_t most = std::min(machine_.array.unit_words, path.piece[at(flow.rows)]);
    for (std::int64_t folds = 1; folds <= most; ++folds) {
      const std::array<std::int64_t, 2> tried = {
          folds, std::min(machine_.array.unit_words / folds, path.piece[at(flow.columns)])};
      const double words = array_words(path, tried);
      if (words < least) {
        least = words;
        path.folds = tried;
      }
    }
    path.core_cycles =
        std::max(path.core_cycles, batch_rounds * cycles_at(least, machine_.array.words_per_cycle));
  }

  /// Sum over rounds of the groups of folds of the busiest core.
  double groups(const NestRounds& path, int d, std::int64_t together) const {
    if (together == 1) return static_cast<double>(path.shares[at(d)]);
    const std::int64_t pieces = path.cores[at(d)] * path.rounds[at(d)];
    const std::int64_t smaller = path.flow->units.units[at(d)] / pieces;
    const std::int64_t larger =
        quotient_up(path.flow->units.units[at(d)] % pieces, path.cores[at(d)]);
    return static_cast<double>(larger * quotient_up(smaller + 1, together) +
                               (path.rounds[at(d)] - larger) * quotient_up(smaller, together));
  }

  double array_words(const NestRounds& path, const std::array<std::int64_t, 2>& folds) const {
    const FlowUnits& flow = path.flow->units;
    std::array<double, 3> times{};
    times[at(flow.streamed)] = static_cast<double>(path.rounds[at(flow.streamed)]);
    times[at(flow.rows)] = groups(path, flow.rows, folds[0]);
    times[at(flow.columns)] = groups(path, flow.columns, folds[1]);
    const std::array<double, 3>& e = path.elements;
    return e[1] * e[2] * times[0] + e[0] * e[2] * times[1] +
           passed_words(e[0] * e[1], times[2], true);
  }

  const LoopNest& nest_;
  const SystolicMachine& machine_;
  NestDeals deals_;
  NestSteps steps_;
  double limit_ = kInfinity;
};

}  // namespace

MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine) {
  assert(nest.batch > 0 && nest.m > 0 && nest.n > 0 && nest.k > 0);
  assert(machine.cores > 0 && machine.array.rows > 0 && machine.array.columns > 0);
  assert(machine.array.unit_words > 0);
  return NestSearch(nest, machine).run();
}

}  // namespace braid
