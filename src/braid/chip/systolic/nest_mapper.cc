#include "braid/chip/systolic/nest_mapper.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/chip/systolic/nest_bound.h"
#include "braid/chip/systolic/nest_deals.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

/// Searches the space of NestMapping by branch and bound: over bufferings, dealings, rounds of the
/// dimensions on the array, rounds of the streamed one, steps and what stays; see each function for
/// what it leaves out and why that is no better.
class NestSearch {
 public:
  NestSearch(const LoopNest& nest, const SystolicMachine& machine)
      : nest_(nest), machine_(machine), deals_(nest, machine) {}

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
    if (best_cycles_ < limit_) {
      mapped.status = NestStatus::optimal;
      mapped.mapping = best_;
      mapped.cost = nest_cost(nest_, machine_, best_).value();
    }
    return mapped;
  }

 private:
  using Counts = std::array<std::int64_t, 3>;

  /// What is fixed on the way down.
  struct Path {
    const Buffering* buffering = nullptr;
    const FlowUnits* flow = nullptr;
    std::int64_t batch_cores = 1, batch_rounds = 1;
    Counts cores{}, shares{};                  ///< Units of the busiest core.
    Counts rounds{}, piece{};                  ///< Units of the largest piece.
    std::array<double, 3> elements{}, tile{};  ///< Of the busiest core; of a piece.
    std::array<std::int64_t, 2> folds = {1, 1};
    LeastCore least_core;
    double streamed_least = 1;  ///< Streamed elements in least_core.passes.
    double core_cycles = 0;
    std::array<double, 3> swept{};  ///< Words of each operand by rounds.
  };

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
    if (!deals_.core_may_take_less(buffering, {f, log}, best_cycles_)) return;
    for (log[1] = 0; log[1] <= std::min(tables.most[1], rest); ++log[1]) {
      for (log[2] = std::min(tables.most[2], rest - log[1]); log[2] >= 0; --log[2]) {
        if (!deals_.core_may_take_less(buffering, {f, log}, best_cycles_)) break;
        if (deals_.may_take_less(buffering, {f, log}, best_cycles_)) search(buffering, {f, log});
      }
    }
  }

  /// Whether there is a mapping below so many cycles; the best is then known.
  bool search_below(double cycles) {
    limit_ = best_cycles_ = cycles;
    for (const Buffering& buffering : deals_.bufferings()) search(buffering);
    return best_cycles_ < limit_;
  }

  void search(const Buffering& buffering) {
    if (!(deals_.bound_of(buffering) < best_cycles_)) return;
    search(buffering, deals_.least_deal());
    if (!(deals_.bound_of(buffering) < best_cycles_)) return;
    search_deals(buffering);
  }

  void search(const Buffering& buffering, const Deal& deal) {
    Path path;
    path.buffering = &buffering;
    const FlowTables& tables = deals_.tables(deal.flow);
    path.flow = &tables.units;
    flow_ = tables.flow;
    path.batch_cores = std::int64_t{1} << deal.log[kBatchDim];
    path.batch_rounds = quotient_up(nest_.batch, path.batch_cores);
    for (std::size_t d = 0; d < 3; ++d) {
      path.cores[d] = std::int64_t{1} << deal.log[d];
      path.shares[d] = quotient_up(path.flow->units[d], path.cores[d]);
      path.elements[d] = tables.elements[d][at(deal.log[d])];
    }
    path.streamed_least =
        static_cast<double>(std::max(path.shares[at(path.flow->streamed)], machine_.array.rows));
    path.least_core = deals_.least_core(deal);
    const int rows = path.flow->rows, columns = path.flow->columns;
    const double least_tile =
        static_cast<double>(std::min(deals_.sizes[at(columns)], path.flow->elements[at(columns)]));
    for_rounds(path, rows, [&] {
      // A window's tile may hold fewer words than its extents multiplied.
      const double widest =
          nest_.window.used ? kInfinity : path.buffering->l2_words / path.tile[at(rows)];
      if (widest < least_tile) return true;
      const double fewest = std::max(1.0, path.elements[at(columns)] / widest);
      if (!rounds_may_be_better(path, fewest, least_tile)) return true;
      const std::int64_t longest = static_cast<std::int64_t>(
          std::min(widest / static_cast<double>(path.flow->elements[at(columns)]),
                   static_cast<double>(path.shares[at(columns)])));
      for_rounds(
          path, columns,
          [&] {
            const auto turns = static_cast<double>(path.rounds[at(columns)]);
            if (!rounds_may_be_better(path, turns, least_tile)) return false;
            if (rounds_may_be_better(path, turns, path.tile[at(columns)])) search_stream(path);
            return true;
          },
          quotient_up(path.shares[at(columns)], std::max<std::int64_t>(1, longest)));
      return true;
    });
  }

  /// Whether the path's rounds of the rows with at least `column_rounds` of the columns, in tiles
  /// that are at least `column_tile` wide, can be better than what is known. A tile must fit the
  /// L2, which bounds how long it is along the streamed dimension.
  bool rounds_may_be_better(const Path& path, double column_rounds, double column_tile) const {
    if (nest_.window.used) return true;
    const FlowUnits& flow = *path.flow;
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
                                      path.buffering->least_hbm_cycles) < best_cycles_;
  }

  void set_rounds(Path& path, int d, std::int64_t rounds) const {
    path.rounds[at(d)] = rounds;
    path.piece[at(d)] = quotient_up(path.shares[at(d)], rounds);
    path.tile[at(d)] = static_cast<double>(
        std::min(deals_.sizes[at(d)], path.piece[at(d)] * path.flow->elements[at(d)]));
  }

  /// Calls `visit` for the numbers of rounds of dimension d, ascending, while it returns true. Of
  /// those with equal largest pieces only the fewest: with more, no tile is smaller and nothing
  /// passes less often.
  template <typename Visit>
  void for_rounds(Path& path, int d, const Visit& visit, std::int64_t first = 1) const {
    const std::int64_t most = path.flow->units[at(d)] / path.cores[at(d)];
    for (std::int64_t rounds = first; rounds <= most;) {
      set_rounds(path, d, rounds);
      if (!visit()) return;
      const std::int64_t piece = path.piece[at(d)];
      if (piece == 1) return;
      rounds = quotient_up(path.shares[at(d)], piece - 1);
    }
  }

  bool l2_fits(const Path& path) const {
    double words = 0;
    for (int operand = 0; operand < kNestDims; ++operand) {
      const double own = tile_words(nest_, static_cast<NestOperand>(operand), path.tile);
      words = machine_.buffers.l2_per_operand ? std::max(words, own) : words + own;
    }
    return words <= path.buffering->l2_words;
  }

  /// Fewest rounds of the streamed dimension with which the tiles fit the L2; 0 where none.
  std::int64_t fewest_stream_rounds(Path& path) const {
    const int d = path.flow->streamed;
    const std::int64_t most = path.flow->units[at(d)] / path.cores[at(d)];
    if (!nest_.window.used) {
      const double a = path.tile[at(path.flow->rows)], b = path.tile[at(path.flow->columns)];
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
    std::int64_t low = 1, high = most + 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      set_rounds(path, d, middle);
      if (l2_fits(path)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low <= most ? low : 0;
  }

  void search_stream(Path& path) {
    const std::int64_t first = fewest_stream_rounds(path);
    if (first == 0) return;
    // Rounds of one streamed element leave most room for the others.
    set_rounds(path, path.flow->streamed, path.shares[at(path.flow->streamed)]);
    if (!steps_may_be_better(path, deals_.core_cycles(path.least_core), 0)) return;
    for_rounds(
        path, path.flow->streamed,
        [&] {
          set_core_cycles(path);
          for (int d = 0; d < kNestDims; ++d) {
            path.swept[at(d)] = swept_words(nest_, static_cast<NestOperand>(d), path.rounds);
          }
          // All terms but HBM's grow with the rounds.
          const double global = least_global_cycles(path);
          if (!is_better(path, global, path.buffering->least_hbm_cycles)) return false;
          if (steps_may_be_better(path, path.core_cycles, global)) search_steps(path);
          return true;
        },
        first);
  }

  /// Cycles of the array and of L2, with the folds that pass fewest words.
  void set_core_cycles(Path& path) const {
    const FlowUnits& flow = *path.flow;
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
  double groups(const Path& path, int d, std::int64_t together) const {
    if (together == 1) return static_cast<double>(path.shares[at(d)]);
    const std::int64_t pieces = path.cores[at(d)] * path.rounds[at(d)];
    const std::int64_t smaller = path.flow->units[at(d)] / pieces;
    const std::int64_t larger = quotient_up(path.flow->units[at(d)] % pieces, path.cores[at(d)]);
    return static_cast<double>(larger * quotient_up(smaller + 1, together) +
                               (path.rounds[at(d)] - larger) * quotient_up(smaller, together));
  }

  double array_words(const Path& path, const std::array<std::int64_t, 2>& folds) const {
    const FlowUnits& flow = *path.flow;
    std::array<double, 3> times{};
    times[at(flow.streamed)] = static_cast<double>(path.rounds[at(flow.streamed)]);
    times[at(flow.rows)] = groups(path, flow.rows, folds[0]);
    times[at(flow.columns)] = groups(path, flow.columns, folds[1]);
    const std::array<double, 3>& e = path.elements;
    return e[1] * e[2] * times[0] + e[0] * e[2] * times[1] +
           passed_words(e[0] * e[1], times[2], true);
  }

  // --- Steps.

  /// Global words of one batch with what stays there read `times` times.
  double global_words(const Path& path, int stays, double times) const {
    double words = 0;
    for (int d = 0; d < kNestDims; ++d) {
      const double turned = d == stays ? times : static_cast<double>(path.rounds[at(d)]);
      words += at(d) == kOutputDim ? passed_words(path.swept[at(d)],
                                                  turned * static_cast<double>(path.cores[2]), true)
                                   : path.swept[at(d)] * turned;
    }
    return words;
  }

  double least_global_cycles(const Path& path) const {
    return deals_.global_rate *
           std::min({global_words(path, 0, 1), global_words(path, 1, 1), global_words(path, 2, 1)});
  }

  bool steps_may_be_better(const Path& path, double core, double global) const {
    Counts round{};
    for (std::size_t d = 0; d < 3; ++d) {
      round[d] = path.cores[d] * path.piece[d] * path.flow->elements[d];
    }
    return deals_.steps_may_take_less(*path.buffering, static_cast<double>(path.batch_cores), round,
                                      {core, global, best_cycles_});
  }

  /// Elements of a step's tile along d.
  double step_tile(const Path& path, int d, std::int64_t steps) const {
    const std::int64_t together =
        quotient_up(path.rounds[at(d)], steps) * path.cores[at(d)] * path.piece[at(d)];
    return static_cast<double>(
        std::min(deals_.sizes[at(d)], together * path.flow->elements[at(d)]));
  }

  bool step_fits(const Path& path, const std::array<double, 3>& tile) const {
    double words = 0;
    for (int operand = 0; operand < kNestDims; ++operand) {
      words += tile_words(nest_, static_cast<NestOperand>(operand), tile);
    }
    return words * static_cast<double>(path.batch_cores) <= path.buffering->global_words;
  }

  /// Of the numbers of steps with equal largest groups only the fewest, as for rounds.
  static std::int64_t next_steps(std::int64_t rounds, std::int64_t steps) {
    const std::int64_t group = quotient_up(rounds, steps);
    return group == 1 ? rounds + 1 : quotient_up(rounds, group - 1);
  }

  void search_steps(const Path& path) {
    const std::array<double, 3> whole = {static_cast<double>(deals_.sizes[0]),
                                         static_cast<double>(deals_.sizes[1]),
                                         static_cast<double>(deals_.sizes[2])};
    if (step_fits(path, whole)) {
      take(path, {1, 1, 1}, 0);
      return;
    }
    for (int stays = 0; stays < kNestDims; ++stays) search_steps(path, stays);
  }

  /// With `stays` in the global buffer: steps of the two dimensions that turn outside. Of its own
  /// dimension the fewest that fit: they make fewer words in the L2 levels and none in HBM's.
  void search_steps(const Path& path, int stays) {
    const int first = (stays + 1) % kNestDims, second = (stays + 2) % kNestDims;
    const double least_global = least_global_cycles(path);
    Counts steps{};
    std::array<double, 3> tile{};
    tile[at(second)] = step_tile(path, second, path.rounds[at(second)]);
    tile[at(stays)] = step_tile(path, stays, path.rounds[at(stays)]);
    for (std::int64_t a = fewest_steps(path, tile, first); a > 0 && a <= path.rounds[at(first)];
         a = next_steps(path.rounds[at(first)], a)) {
      steps[at(first)] = a;
      tile[at(first)] = step_tile(path, first, a);
      tile[at(stays)] = step_tile(path, stays, path.rounds[at(stays)]);
      steps[at(second)] = steps[at(stays)] = 1;
      if (!is_better(path, least_global, hbm_cycles(steps, stays))) return;
      for (std::int64_t b = fewest_steps(path, tile, second); b > 0 && b <= path.rounds[at(second)];
           b = next_steps(path.rounds[at(second)], b)) {
        steps[at(second)] = b;
        steps[at(stays)] = 1;
        tile[at(second)] = step_tile(path, second, b);
        if (!is_better(path, least_global, hbm_cycles(steps, stays))) break;
        steps[at(stays)] = fewest_steps(path, tile, stays);
        take(path, steps, stays);
        if (steps[at(stays)] == 1) break;  // More steps of `second` only add words.
      }
    }
  }

  bool is_better(const Path& path, double global, double hbm) const {
    return path.buffering->overlapped(path.core_cycles, global, hbm) < best_cycles_;
  }

  /// Fewest steps of dimension d with which a tile of such extents along the others fits; 0: none.
  std::int64_t fewest_steps(const Path& path, std::array<double, 3> tile, int d) const {
    if (!nest_.window.used) {
      const double x = tile[at((d + 1) % 3)], y = tile[at((d + 2) % 3)];
      const double longest = std::floor(
          (path.buffering->global_words / static_cast<double>(path.batch_cores) - x * y) / (x + y));
      if (longest >= static_cast<double>(deals_.sizes[at(d)])) return 1;
      const std::int64_t of_round =
          path.cores[at(d)] * path.piece[at(d)] * path.flow->elements[at(d)];
      if (longest < static_cast<double>(std::min(of_round, deals_.sizes[at(d)]))) return 0;
      return quotient_up(path.rounds[at(d)], static_cast<std::int64_t>(longest) / of_round);
    }
    std::int64_t low = 1, high = path.rounds[at(d)] + 1;
    tile[at(d)] = step_tile(path, d, high - 1);
    if (!step_fits(path, tile)) return 0;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      tile[at(d)] = step_tile(path, d, middle);
      if (step_fits(path, tile)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  double hbm_words(const Counts& steps, int stays) const {
    double words = 0;
    for (int d = 0; d < kNestDims; ++d) {
      if (is_on_chip(nest_, static_cast<NestOperand>(d))) continue;
      const double swept = nest_.window.used
                               ? swept_words(nest_, static_cast<NestOperand>(d), steps)
                               : deals_.once[at(d)];
      words += passed_words(swept, d == stays ? 1 : static_cast<double>(steps[at(d)]),
                            at(d) == kOutputDim);
    }
    return words;
  }
  double hbm_cycles(const Counts& steps, int stays) const {
    return hbm_words(steps, stays) * deals_.hbm_rate;
  }

  /// Weighs every choice of what stays in L2.
  void take(const Path& path, const Counts& steps, int global_stays) {
    const double words = hbm_words(steps, global_stays);
    for (int stays = 0; stays < kNestDims; ++stays) {
      bool through = stays == global_stays;
      for (int d = 0; d < kNestDims; ++d) {
        if (d != stays && steps[at(d)] != path.rounds[at(d)]) through = false;
      }
      const double global =
          deals_.global_rate *
          global_words(path, stays, through ? 1 : static_cast<double>(steps[at(stays)]));
      const double cycles =
          path.buffering->overlapped(path.core_cycles, global, words * deals_.hbm_rate);
      if (cycles < best_cycles_ || (cycles == best_cycles_ && words < best_hbm_words_)) {
        best_cycles_ = cycles;
        best_hbm_words_ = words;
        keep(path, steps, stays, global_stays);
      }
    }
  }

  void keep(const Path& path, const Counts& steps, int stays, int global_stays) {
    best_ = {.flow = flow_,
             .l2_doubled = path.buffering->l2_doubled,
             .global_doubled = path.buffering->global_doubled,
             .l2_stays = static_cast<NestOperand>(stays),
             .global_stays = static_cast<NestOperand>(global_stays),
             .batch_cores = path.batch_cores,
             .cores = path.cores,
             .rounds = path.rounds,
             .steps = steps,
             .folds = path.folds};
  }

  const LoopNest& nest_;
  const SystolicMachine& machine_;
  NestDeals deals_;
  ArrayFlow flow_ = ArrayFlow::weight_stationary;
  double limit_ = kInfinity, best_cycles_ = kInfinity, best_hbm_words_ = kInfinity;
  NestMapping best_;
};

}  // namespace

MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine) {
  assert(nest.batch > 0 && nest.m > 0 && nest.n > 0 && nest.k > 0);
  assert(machine.cores > 0 && machine.array.rows > 0 && machine.array.columns > 0);
  assert(machine.array.unit_words > 0);
  return NestSearch(nest, machine).run();
}

}  // namespace braid
