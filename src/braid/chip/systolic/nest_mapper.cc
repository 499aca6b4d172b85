#include "braid/chip/systolic/nest_mapper.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "braid/base/index.h"
#include "braid/base/infinity.h"
#include "braid/base/rounding.h"
#include "braid/chip/systolic/nest_bound.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {
namespace {

constexpr std::size_t kOutputDim = static_cast<std::size_t>(NestOperand::output);
constexpr int kMostDoublings = 40;

/// How a flow is dealt out over the cores: logarithms of the cores of m, n, k and the batch.
struct Deal {
  int flow = 0;
  std::array<int, 4> log{};
};
constexpr std::size_t kBatch = 3;

/// One choice of what is doubled; what no mapping of it stays below.
struct Buffering {
  bool l2_doubled = true, global_doubled = true;
  double l2_words = 0, global_words = 0;  ///< For one copy of the tiles.
  double least_global_cycles = 0, least_hbm_cycles = 0;
};

/// Searches the space of NestMapping by branch and bound: over bufferings, dealings, rounds of the
/// dimensions on the array, rounds of the streamed one, steps and what stays; see each function for
/// what it leaves out and why that is no better.
class NestSearch {
 public:
  NestSearch(const LoopNest& nest, const SystolicMachine& machine)
      : nest_(nest), machine_(machine), sizes_{nest.m, nest.n, nest.k} {
    batch_ = static_cast<double>(nest.batch);
    for (int d = 0; d < kNestDims; ++d) {
      once_[at(d)] = swept_words(nest, static_cast<NestOperand>(d), {1, 1, 1});
    }
    compulsory_ = batch_ * (once_[0] + once_[1] + once_[2]);
    hbm_once_ = compulsory_hbm_words(nest) / batch_;
    fill_ = fill_cycles(machine.array);
    array_rate_ = rate_of(machine.array.words_per_cycle);
    global_rate_ = rate_of(machine.buffers.global_words_per_cycle) * batch_;
    hbm_rate_ = rate_of(machine.buffers.hbm_words_per_cycle) * batch_;
  }

  MappedNest run() {
    set_flows();
    find_least_deal();
    set_bufferings();
    // Most nests have a mapping at the bound itself; else, below a limit little is left to look at.
    const double bound = bound_of(bufferings_[0]);
    if (!search_below(bound * (1 + kLastDigits))) {
      bound_hbm();
      double least = kInfinity;
      for (const Buffering& buffering : bufferings_) {
        least = std::min(least, bound_of(buffering));
      }
      for (const double limit : {1.02, 1.3, 1.7, 2.5, kInfinity}) {
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

  /// What a core takes at least: passes without fill, words between L2 and array.
  struct LeastCore {
    double passes = 0, l2 = 0;
  };
  double core_cycles(const LeastCore& core) const { return std::max(core.passes + fill_, core.l2); }

  /// What is fixed on the way down.
  struct Path {
    const Buffering* buffering = nullptr;
    const FlowUnits* flow = nullptr;
    std::int64_t batch_cores = 1, batch_rounds = 1;
    Counts cores{}, shares{};  ///< Units of the busiest core.
    Counts rounds{}, piece{};  ///< Units of the largest piece.
    std::array<double, 3> elements{}, tile{};  ///< Of the busiest core; of a piece.
    std::array<std::int64_t, 2> folds = {1, 1};
    LeastCore least_core;
    double streamed_least = 1;  ///< Streamed elements in least_core.passes.
    double core_cycles = 0;
    std::array<double, 3> swept{};  ///< Words of each operand by rounds.
  };

  static double rate_of(double words_per_cycle) {
    return words_per_cycle > 0 ? 1 / words_per_cycle : 0;
  }

  // --- Dealing out over cores.

  /// What a flow's dimensions are dealt out by: tables over the logarithm of a dimension's cores.
  struct FlowTables {
    FlowUnits units;
    std::array<int, 4> most{};  ///< Logarithm of the most cores.
    std::array<std::array<double, kMostDoublings>, 4> share;  ///< Units of the busiest core.
    std::array<std::array<double, kMostDoublings>, 4> elements;
  };

  static int doublings(std::int64_t of) {
    return std::bit_width(static_cast<std::uint64_t>(of)) - 1;
  }

  void set_flows() {
    all_ = doublings(machine_.cores);
    const bool turned_is_same =
        machine_.array.rows == machine_.array.columns &&
        (machine_.array.flows >> static_cast<int>(ArrayFlow::output_stationary) & 1) != 0;
    for (int f = 0; f < kArrayFlows; ++f) {
      if ((machine_.array.flows >> f & 1) == 0) continue;
      if (f == static_cast<int>(ArrayFlow::output_stationary_turned) && turned_is_same) continue;
      flows_[at(flow_count_)] = f;
      FlowTables& tables = tables_[at(flow_count_++)];
      tables.units = flow_units(nest_, machine_.array, static_cast<ArrayFlow>(f));
      for (std::size_t d = 0; d < 4; ++d) {
        const std::int64_t units = d == kBatch ? nest_.batch : tables.units.units[d];
        tables.most[d] = std::min(all_, doublings(units));
        for (int log = 0; log <= tables.most[d]; ++log) {
          const std::int64_t share = quotient_up(units, std::int64_t{1} << log);
          tables.share[d][at(log)] = static_cast<double>(share);
          if (d == kBatch) continue;
          tables.elements[d][at(log)] =
              static_cast<double>(log == 0 ? sizes_[d] : share * tables.units.elements[d]);
        }
      }
    }
  }

  /// Core cycles that no rounds stay below; none grows with more cores of a dimension.
  LeastCore least_core_cycles(const FlowTables& tables, const std::array<int, 4>& log) const {
    const FlowUnits& flow = tables.units;
    const auto row = at(flow.rows), column = at(flow.columns), stream = at(flow.streamed);
    const double rows = tables.share[row][at(log[row])];
    const double columns = tables.share[column][at(log[column])];
    const double batch = tables.share[kBatch][at(log[kBatch])];
    const double passes = batch * rows * columns *
                          std::max(tables.share[stream][at(log[stream])],
                                   static_cast<double>(machine_.array.rows));
    if (!(array_rate_ > 0)) return {passes, 0};
    const double r = tables.elements[row][at(log[row])];
    const double c = tables.elements[column][at(log[column])];
    const double s = tables.elements[stream][at(log[stream])];
    // c·s words for each group of row folds, r·s for each of column folds: with a product of at
    // most unit_words for the sizes of groups, their sum is least where both are equal.
    double of_rows = c * s * rows, of_columns = r * s * columns, words = r * c;
    if (row == kOutputDim) of_rows *= 2, words -= c * s;
    if (column == kOutputDim) of_columns *= 2, words -= r * s;
    words += machine_.array.unit_words == 1
                 ? of_rows + of_columns
                 : std::max(2 * std::sqrt(of_rows * of_columns /
                                          static_cast<double>(machine_.array.unit_words)),
                            of_rows / rows + of_columns / columns);
    return {passes, batch * words * array_rate_};
  }

  /// Global cycles that no rounds stay below. With what stays chosen, V multiplications read the
  /// operands that lack x and y V/(rounds' tile along x) and V/(along y) times; both tiles together
  /// are a tile of the operand that stays of all cores, V/x + V/y ≥ 2V/√(xy).
  double least_global_cycles(const Buffering& buffering, const std::array<int, 4>& log) const {
    if (nest_.window.used) return buffering.least_global_cycles;
    const double volume = static_cast<double>(sizes_[0]) * static_cast<double>(sizes_[1]) *
                          static_cast<double>(sizes_[2]);
    double least = kInfinity;
    for (std::size_t stays = 0; stays < 3; ++stays) {
      const std::size_t x = (stays + 1) % 3, y = (stays + 2) % 3;
      const double tile = buffering.l2_words * static_cast<double>(std::int64_t{1} << (log[x] + log[y]));
      const double output = stays == kOutputDim ? 0 : once_[kOutputDim];
      const double weight = stays == kOutputDim ? 1 : 2;
      least = std::min(least, once_[stays] - output + 2 * volume * std::sqrt(weight / tile));
    }
    return std::max(buffering.least_global_cycles, least * global_rate_);
  }

  /// The deal with the least core cycles: as none grows with more cores, one that has as many of k
  /// as are left.
  void find_least_deal() {
    for (int f = 0; f < flow_count_; ++f) {
      const FlowTables& tables = tables_[at(f)];
      std::array<int, 4> log{};
      for (log[3] = 0; log[3] <= tables.most[3]; ++log[3]) {
        for (log[0] = 0; log[0] <= std::min(tables.most[0], all_ - log[3]); ++log[0]) {
          const int rest = all_ - log[3] - log[0];
          for (log[1] = 0; log[1] <= std::min(tables.most[1], rest); ++log[1]) {
            log[2] = std::min(tables.most[2], rest - log[1]);
            const double cycles = core_cycles(least_core_cycles(tables, log));
            if (cycles < least_core_cycles_) {
              least_core_cycles_ = cycles;
              least_deal_ = {f, log};
            }
          }
        }
      }
    }
  }

  void search_deals(const Buffering& buffering) {
    for (int f = 0; f < flow_count_; ++f) {
      const FlowTables& tables = tables_[at(f)];
      std::array<int, 4> log{};
      for (log[3] = 0; log[3] <= tables.most[3]; ++log[3]) {
        for (log[0] = 0; log[0] <= std::min(tables.most[0], all_ - log[3]); ++log[0]) {
          search_deals(buffering, f, log);
        }
      }
    }
  }

  void search_deals(const Buffering& buffering, int f, std::array<int, 4> log) {
    const FlowTables& tables = tables_[at(f)];
    const int rest = all_ - log[3] - log[0];
    log[1] = std::min(tables.most[1], rest);
    log[2] = std::min(tables.most[2], rest);
    if (!core_may_be_better(buffering, tables, log)) return;
    for (log[1] = 0; log[1] <= std::min(tables.most[1], rest); ++log[1]) {
      for (log[2] = std::min(tables.most[2], rest - log[1]); log[2] >= 0; --log[2]) {
        if (!core_may_be_better(buffering, tables, log)) break;
        if (may_be_better(buffering, tables, log)) search(buffering, {f, log});
      }
    }
  }

  /// Once it cannot, neither can it with fewer cores of any dimension.
  bool core_may_be_better(const Buffering& buffering, const FlowTables& tables,
                          const std::array<int, 4>& log) const {
    return overlapped(buffering, core_cycles(least_core_cycles(tables, log)),
                      buffering.least_global_cycles,
                      buffering.least_hbm_cycles) < best_cycles_;
  }

  bool may_be_better(const Buffering& buffering, const FlowTables& tables,
                     const std::array<int, 4>& log) const {
    const double core = core_cycles(least_core_cycles(tables, log));
    const double global = least_global_cycles(buffering, log);
    if (!(overlapped(buffering, core, global, buffering.least_hbm_cycles) < best_cycles_)) {
      return false;
    }
    const double slices = static_cast<double>(std::int64_t{1} << log[kBatch]);
    Counts unit{};
    std::array<double, 3> round{};
    for (std::size_t d = 0; d < 3; ++d) {
      unit[d] = tables.units.elements[d] << log[d];
      round[d] = static_cast<double>(std::min(sizes_[d], unit[d]));
    }
    const double hbm = least_hbm_cycles(buffering, slices, round);
    if (!(overlapped(buffering, core, global, hbm) < best_cycles_)) return false;
    // Whole steps seldom take so much more; the closer bound is not worth its time then.
    constexpr double rounded_up = 1.25;
    if (overlapped(buffering, core, global, rounded_up * hbm) < best_cycles_) return true;
    const double stepped = hbm_rate_ * least_hbm_words(buffering.global_words / slices, unit);
    return overlapped(buffering, core, global, stepped) < best_cycles_;
  }

  // --- Buffering.

  double overlapped(const Buffering& buffering, double core, double global, double hbm) const {
    return overlapped_cycles(buffering.l2_doubled, buffering.global_doubled, core, global, hbm);
  }

  void set_bufferings() {
    const double once = compulsory_ / batch_;
    for (std::size_t i = 0; i < bufferings_.size(); ++i) {
      Buffering& buffering = bufferings_[i];
      buffering.l2_doubled = i < 2;
      buffering.global_doubled = i % 2 == 0;
      buffering.l2_words = machine_.buffers.l2_words / (buffering.l2_doubled ? 2 : 1);
      buffering.global_words = machine_.buffers.global_words / (buffering.global_doubled ? 2 : 1);
      buffering.least_global_cycles = once * global_rate_;
      buffering.least_hbm_cycles = hbm_once_ * hbm_rate_;
    }
  }

  void bound_hbm() {
    const double whole = least_hbm_words(machine_.buffers.global_words, {1, 1, 1});
    const double half = least_hbm_words(machine_.buffers.global_words / 2, {1, 1, 1});
    for (Buffering& buffering : bufferings_) {
      buffering.least_hbm_cycles = hbm_rate_ * (buffering.global_doubled ? half : whole);
    }
  }

  /// Whether there is a mapping below so many cycles; the best is then known.
  bool search_below(double cycles) {
    limit_ = best_cycles_ = cycles;
    for (const Buffering& buffering : bufferings_) search(buffering);
    return best_cycles_ < limit_;
  }

  void search(const Buffering& buffering) {
    if (!(bound_of(buffering) < best_cycles_)) return;
    search(buffering, least_deal_);
    if (!(bound_of(buffering) < best_cycles_)) return;
    search_deals(buffering);
  }

  double bound_of(const Buffering& buffering) const {
    return overlapped(buffering, least_core_cycles_, buffering.least_global_cycles,
                      buffering.least_hbm_cycles);
  }

  /// Fewest words, of one batch, between HBM and a buffer of such tiles, when these are whole
  /// multiples of `unit` elements or a whole dimension: what any steps of any rounds make of deals
  /// with such rounds of one unit. With what stays chosen, its own dimension is best cut finest.
  double least_hbm_words(double words, const Counts& unit) const {
    const double once = compulsory_ / batch_;
    if (nest_.window.used || nest_.on_chip != 0 || once <= words) return hbm_once_;
    double least = kInfinity;
    for (std::size_t stays = 0; stays < 3; ++stays) {
      const std::size_t first = (stays + 1) % 3, second = (stays + 2) % 3;
      const auto own = static_cast<double>(std::min(sizes_[stays], unit[stays]));
      for (std::int64_t tile = sizes_[first]; tile > 0;) {
        const std::int64_t steps = quotient_up(sizes_[first], tile);
        // The smallest tile of so many steps.
        const std::int64_t units = quotient_up(quotient_up(sizes_[first], steps), unit[first]);
        const auto a = static_cast<double>(std::min(sizes_[first], units * unit[first]));
        tile = (units - 1) * unit[first];
        const double longest = (words - a * own) / (a + own);
        const std::int64_t others = steps_of(sizes_[second], unit[second], longest);
        if (others == 0) continue;
        least = std::min(
            least, once_[stays] + moved_words(first, static_cast<double>(steps)) +
                       moved_words(second, static_cast<double>(others)));
      }
    }
    return least;
  }

  /// Steps over `size` by the longest tile of whole units; 0 where not even one fits.
  static std::int64_t steps_of(std::int64_t size, std::int64_t unit, double longest) {
    if (longest >= static_cast<double>(size)) return 1;
    if (longest < static_cast<double>(unit)) return 0;
    return quotient_up(size, static_cast<std::int64_t>(longest) / unit * unit);
  }

  void search(const Buffering& buffering, const Deal& deal) {
    Path path;
    path.buffering = &buffering;
    path.flow = &tables_[at(deal.flow)].units;
    flow_ = static_cast<ArrayFlow>(flows_[at(deal.flow)]);
    path.batch_cores = std::int64_t{1} << deal.log[kBatch];
    path.batch_rounds = quotient_up(nest_.batch, path.batch_cores);
    for (std::size_t d = 0; d < 3; ++d) {
      path.cores[d] = std::int64_t{1} << deal.log[d];
      path.shares[d] = quotient_up(path.flow->units[d], path.cores[d]);
      path.elements[d] = tables_[at(deal.flow)].elements[d][at(deal.log[d])];
    }
    path.streamed_least = static_cast<double>(
        std::max(path.shares[at(path.flow->streamed)], machine_.array.rows));
    path.least_core = least_core_cycles(tables_[at(deal.flow)], deal.log);
    const int rows = path.flow->rows, columns = path.flow->columns;
    const double least_tile = static_cast<double>(
        std::min(sizes_[at(columns)], path.flow->elements[at(columns)]));
    for_rounds(path, rows, [&] {
      const double widest = path.buffering->l2_words / path.tile[at(rows)];
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

  double moved_words(std::size_t d, double times) const {
    return passed_words(once_[d], times, d == kOutputDim);
  }

  /// HBM cycles that no steps stay below whose tiles hold at least `round` elements along each
  /// dimension. With what stays chosen, x·y + s·(x + y) words are held, so with p = √(xy)
  /// p² + 2·s·p at most, and as in least_global_cycles() 2V/p words or more are moved.
  double least_hbm_cycles(const Buffering& buffering, double batch_cores,
                          const std::array<double, 3>& round) const {
    const double words = buffering.global_words / batch_cores;
    if (nest_.window.used || nest_.on_chip != 0 || once_[0] + once_[1] + once_[2] <= words) {
      return buffering.least_hbm_cycles;
    }
    const double volume = once_[0] * static_cast<double>(sizes_[0]);
    double least = kInfinity;
    for (std::size_t stays = 0; stays < 3; ++stays) {
      const double s = round[stays];
      const double root = std::sqrt(s * s + words) - s;
      const bool output = stays == kOutputDim;
      least = std::min(least, once_[stays] - (output ? 0 : once_[kOutputDim]) +
                                  (output ? 2 : 2 * std::sqrt(2.0)) * volume / root);
    }
    return std::max(buffering.least_hbm_cycles, least * hbm_rate_);
  }

  /// Whether the path's rounds of the rows with at least `column_rounds` of the columns, in tiles
  /// that are at least `column_tile` wide, can be better than what is known. A tile must fit the L2,
  /// which bounds how long it is along the streamed dimension.
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
    const double stationary =
        path.elements[at(flow.rows)] * path.elements[at(flow.columns)] *
        (at(flow.streamed) == kOutputDim ? 2 : 1);
    const double core =
        std::max(path.least_core.passes * std::max(1.0, stream_rounds *
                                                            static_cast<double>(machine_.array.rows) /
                                                            path.streamed_least) +
                     fill_,
                 path.least_core.l2 + batch_rounds * array_rate_ * stationary * (stream_rounds - 1));
    const double row_words = moved_words(at(flow.rows), static_cast<double>(path.rounds[at(flow.rows)]));
    const double column_words = moved_words(at(flow.columns), column_rounds);
    const double stream_words = moved_words(at(flow.streamed), stream_rounds);
    const double global =
        std::min({once_[at(flow.rows)] + column_words + stream_words,
                  row_words + once_[at(flow.columns)] + stream_words,
                  row_words + column_words + once_[at(flow.streamed)]});
    return overlapped(*path.buffering, core, global * global_rate_,
                      path.buffering->least_hbm_cycles) < best_cycles_;
  }

  void set_rounds(Path& path, int d, std::int64_t rounds) const {
    path.rounds[at(d)] = rounds;
    path.piece[at(d)] = quotient_up(path.shares[at(d)], rounds);
    path.tile[at(d)] =
        static_cast<double>(std::min(sizes_[at(d)], path.piece[at(d)] * path.flow->elements[at(d)]));
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
      const double longest = machine_.buffers.l2_per_operand ? words / std::max(a, b)
                                                             : (words - a * b) / (a + b);
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
          if (is_better(path, global, least_hbm_cycles(path))) search_steps(path);
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
    path.core_cycles = batch_rounds * passes + fill_ * (path.buffering->l2_doubled ? 1 : rounds);
    path.folds = {1, 1};
    if (!(machine_.array.words_per_cycle > 0)) return;
    double least = kInfinity;
    const std::int64_t most = std::min(machine_.array.unit_words, path.piece[at(flow.rows)]);
    for (std::int64_t folds = 1; folds <= most; ++folds) {
      const std::array<std::int64_t, 2> tried = {
          folds,
          std::min(machine_.array.unit_words / folds, path.piece[at(flow.columns)])};
      const double words = array_words(path, tried);
      if (words < least) {
        least = words;
        path.folds = tried;
      }
    }
    path.core_cycles = std::max(path.core_cycles,
                                batch_rounds * cycles_at(least, machine_.array.words_per_cycle));
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
      words += at(d) == kOutputDim
                   ? passed_words(path.swept[at(d)],
                                  turned * static_cast<double>(path.cores[2]), true)
                   : path.swept[at(d)] * turned;
    }
    return words;
  }

  double least_global_cycles(const Path& path) const {
    return global_rate_ *
           std::min({global_words(path, 0, 1), global_words(path, 1, 1), global_words(path, 2, 1)});
  }

  double least_hbm_cycles(const Path& path) const {
    std::array<double, 3> round{};
    for (int d = 0; d < kNestDims; ++d) round[at(d)] = step_tile(path, d, path.rounds[at(d)]);
    return least_hbm_cycles(*path.buffering, static_cast<double>(path.batch_cores), round);
  }

  /// Elements of a step's tile along d.
  double step_tile(const Path& path, int d, std::int64_t steps) const {
    const std::int64_t together =
        quotient_up(path.rounds[at(d)], steps) * path.cores[at(d)] * path.piece[at(d)];
    return static_cast<double>(std::min(sizes_[at(d)], together * path.flow->elements[at(d)]));
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
    const std::array<double, 3> whole = {static_cast<double>(sizes_[0]),
                                         static_cast<double>(sizes_[1]),
                                         static_cast<double>(sizes_[2])};
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
      for (std::int64_t b = fewest_steps(path, tile, second);
           b > 0 && b <= path.rounds[at(second)]; b = next_steps(path.rounds[at(second)], b)) {
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
    return overlapped(*path.buffering, path.core_cycles, global, hbm) < best_cycles_;
  }

  /// Fewest steps of dimension d with which a tile of such extents along the others fits; 0: none.
  std::int64_t fewest_steps(const Path& path, std::array<double, 3> tile, int d) const {
    if (!nest_.window.used) {
      const double x = tile[at((d + 1) % 3)], y = tile[at((d + 2) % 3)];
      const double longest =
          std::floor((path.buffering->global_words / static_cast<double>(path.batch_cores) - x * y) /
                     (x + y));
      if (longest >= static_cast<double>(sizes_[at(d)])) return 1;
      const std::int64_t of_round = path.cores[at(d)] * path.piece[at(d)] * path.flow->elements[at(d)];
      if (longest < static_cast<double>(std::min(of_round, sizes_[at(d)]))) return 0;
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
                               : once_[at(d)];
      words += passed_words(swept, d == stays ? 1 : static_cast<double>(steps[at(d)]),
                            at(d) == kOutputDim);
    }
    return words;
  }
  double hbm_cycles(const Counts& steps, int stays) const {
    return hbm_words(steps, stays) * hbm_rate_;
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
          global_rate_ *
          global_words(path, stays, through ? 1 : static_cast<double>(steps[at(stays)]));
      const double cycles =
          overlapped(*path.buffering, path.core_cycles, global, words * hbm_rate_);
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
  Counts sizes_;
  double batch_ = 1;
  std::array<double, 3> once_{};  ///< Words of each operand of one batch.
  double compulsory_ = 0, hbm_once_ = 0, fill_ = 0;
  double array_rate_ = 0;                  ///< Cycles of a word.
  double global_rate_ = 0, hbm_rate_ = 0;  ///< Cycles of a word of every batch.
  int all_ = 0;  ///< Logarithm of the cores that are used.
  int flow_count_ = 0;
  std::array<int, kArrayFlows> flows_{};
  std::array<FlowTables, kArrayFlows> tables_;  // Set as far as it is read.
  Deal least_deal_;
  std::array<Buffering, 4> bufferings_;
  double least_core_cycles_ = kInfinity;
  ArrayFlow flow_ = ArrayFlow::weight_stationary;
  double limit_ = kInfinity, best_cycles_ = kInfinity, best_hbm_words_ = kInfinity;
  NestMapping best_;
};

}  // namespace

MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine) {
  return NestSearch(nest, machine).run();
}

}  // namespace braid
