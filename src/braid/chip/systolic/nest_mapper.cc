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

constexpr int kOutputDim = static_cast<int>(NestOperand::output);
constexpr int kMostDoublings = 40;

/// How a flow is dealt out over the cores, and what its passes take at least.
struct Dealt {
  double core_cycles = 0;  ///< In one round, so at least in all mappings of it.
  std::int8_t flow = 0;
  std::int8_t batch_log = 0;
  std::array<std::int8_t, 3> log{};
};

/// One choice of what is doubled; what no mapping of it stays below.
struct Buffering {
  bool l2_doubled = true, global_doubled = true;
  double l2_words = 0, global_words = 0;  ///< For one copy of the tiles.
  double least_hbm_cycles = 0;
};

/// Searches the space of NestMapping by branch and bound: over bufferings, dealings, rounds of the
/// dimensions on the array, rounds of the streamed one, steps and what stays; see each function for
/// what it leaves out and why that is no better.
class NestSearch {
 public:
  NestSearch(const LoopNest& nest, const SystolicMachine& machine, std::vector<Dealt>& dealt)
      : nest_(nest), machine_(machine), dealt_(dealt), sizes_{nest.m, nest.n, nest.k} {
    dealt_.clear();
    batch_ = static_cast<double>(nest.batch);
    for (int d = 0; d < kNestDims; ++d) {
      once_[at(d)] = swept_words(nest, static_cast<NestOperand>(d), {1, 1, 1});
    }
    compulsory_ = batch_ * (once_[0] + once_[1] + once_[2]);
    fill_ = fill_cycles(machine.array);
    global_rate_ = rate_of(machine.buffers.global_words_per_cycle) * batch_;
    hbm_rate_ = rate_of(machine.buffers.hbm_words_per_cycle) * batch_;
  }

  MappedNest run() {
    list_dealt();
    for (const bool l2_doubled : {true, false}) {
      for (const bool global_doubled : {true, false}) search(l2_doubled, global_doubled);
    }
    MappedNest mapped;
    mapped.bound_cycles = least_cycles(nest_, machine_);
    mapped.cost.cycles = kInfinity;
    if (best_cycles_ < kInfinity) {
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
    Counts cores{}, shares{};  ///< Units of the busiest core.
    Counts rounds{}, piece{};  ///< Units of the largest piece.
    std::array<double, 3> elements{}, tile{};  ///< Of the busiest core; of a piece.
    std::array<std::int64_t, 2> folds = {1, 1};
    double core_cycles = 0;
    std::array<double, 3> swept{};  ///< Words of each operand by rounds.
  };

  static double rate_of(double words_per_cycle) {
    return words_per_cycle > 0 ? 1 / words_per_cycle : 0;
  }

  // --- Dealing out over cores.

  void list_dealt() {
    for (int f = 0; f < kArrayFlows; ++f) {
      if ((machine_.array.flows >> f & 1) == 0) continue;
      if (f == static_cast<int>(ArrayFlow::output_stationary_turned) &&
          machine_.array.rows == machine_.array.columns &&
          (machine_.array.flows >> static_cast<int>(ArrayFlow::output_stationary) & 1) != 0) {
        continue;  // The same array.
      }
      flows_[at(f)] = flow_units(nest_, machine_.array, static_cast<ArrayFlow>(f));
      list_dealt(f);
    }
    // The least first; the order of the others is that of the lists, so the same everywhere.
    const auto least = std::min_element(
        dealt_.begin(), dealt_.end(),
        [](const Dealt& a, const Dealt& b) { return a.core_cycles < b.core_cycles; });
    if (least != dealt_.end()) {
      least_core_cycles_ = least->core_cycles;
      std::iter_swap(dealt_.begin(), least);
    }
  }

  static int doublings(std::int64_t of) {
    return std::bit_width(static_cast<std::uint64_t>(of)) - 1;
  }

  void list_dealt(int f) {
    const FlowUnits& flow = flows_[at(f)];
    const int all = doublings(machine_.cores);
    std::array<int, 4> most{};
    std::array<std::array<double, kMostDoublings>, 4> shares;
    for (std::size_t d = 0; d < 4; ++d) {
      const std::int64_t units = d == 3 ? nest_.batch : flow.units[d];
      most[d] = std::min(all, doublings(units));
      for (int log = 0; log <= most[d]; ++log) {
        shares[d][at(log)] = static_cast<double>(quotient_up(units, std::int64_t{1} << log));
      }
    }
    for (double& share : shares[at(flow.streamed)]) {
      share = std::max(share, static_cast<double>(machine_.array.rows));
    }
    Dealt dealt;
    dealt.flow = static_cast<std::int8_t>(f);
    for (int b = 0; b <= most[3]; ++b) {
      for (int m = 0; m <= std::min(most[0], all - b); ++m) {
        for (int n = 0; n <= std::min(most[1], all - b - m); ++n) {
          for (int k = 0; k <= std::min(most[2], all - b - m - n); ++k) {
            dealt.core_cycles =
                shares[3][at(b)] * shares[0][at(m)] * shares[1][at(n)] * shares[2][at(k)] + fill_;
            dealt.batch_log = static_cast<std::int8_t>(b);
            dealt.log = {static_cast<std::int8_t>(m), static_cast<std::int8_t>(n),
                         static_cast<std::int8_t>(k)};
            dealt_.push_back(dealt);
          }
        }
      }
    }
  }

  // --- Buffering.

  double overlapped(const Buffering& buffering, double core, double global, double hbm) const {
    return overlapped_cycles(buffering.l2_doubled, buffering.global_doubled, core, global, hbm);
  }

  void search(bool l2_doubled, bool global_doubled) {
    Buffering buffering{.l2_doubled = l2_doubled, .global_doubled = global_doubled};
    buffering.l2_words = machine_.buffers.l2_words / (l2_doubled ? 2 : 1);
    buffering.global_words = machine_.buffers.global_words / (global_doubled ? 2 : 1);
    buffering.least_hbm_cycles = compulsory_ / batch_ * hbm_rate_;
    const double least_global = compulsory_ / batch_ * global_rate_;
    if (!(overlapped(buffering, least_core_cycles_, least_global, buffering.least_hbm_cycles) <
          best_cycles_)) {
      return;
    }
    buffering.least_hbm_cycles = least_hbm_words(buffering.global_words) * hbm_rate_;
    const double bound =
        overlapped(buffering, least_core_cycles_, least_global, buffering.least_hbm_cycles);
    for (const Dealt& dealt : dealt_) {
      if (!(bound < best_cycles_)) return;
      if (!(overlapped(buffering, dealt.core_cycles, least_global, buffering.least_hbm_cycles) <
            best_cycles_)) {
        continue;
      }
      search(buffering, dealt);
    }
  }

  /// Fewest words, of one batch, between HBM and a buffer of such tiles: steps over elements rather
  /// than over rounds, so no mapping has fewer. With what stays chosen, its own dimension is best
  /// cut finest.
  double least_hbm_words(double words) const {
    const double once = compulsory_ / batch_;
    if (nest_.window.used || once <= words) return once;
    double least = kInfinity;
    for (std::size_t stays = 0; stays < 3; ++stays) {
      const std::size_t first = (stays + 1) % 3, second = (stays + 2) % 3;
      for (std::int64_t tile = sizes_[first]; tile > 0;) {
        const std::int64_t steps = quotient_up(sizes_[first], tile);
        tile = quotient_up(sizes_[first], steps);
        const auto a = static_cast<double>(tile);
        // a·b + a + b words are held.
        const double b = std::floor((words - a) / (a + 1));
        if (b >= 1) {
          const double others = std::ceil(static_cast<double>(sizes_[second]) / b);
          least = std::min(least, once_[stays] +
                                      passed_words(once_[first], static_cast<double>(steps),
                                                   first == kOutputDim) +
                                      passed_words(once_[second], others, second == kOutputDim));
        }
        --tile;
      }
    }
    return least;
  }

  // --- Rounds.

  void search(const Buffering& buffering, const Dealt& dealt) {
    Path path;
    path.buffering = &buffering;
    path.flow = &flows_[at(dealt.flow)];
    flow_ = static_cast<ArrayFlow>(dealt.flow);
    path.batch_cores = std::int64_t{1} << dealt.batch_log;
    path.batch_rounds = quotient_up(nest_.batch, path.batch_cores);
    for (std::size_t d = 0; d < 3; ++d) {
      path.cores[d] = std::int64_t{1} << dealt.log[d];
      path.shares[d] = quotient_up(path.flow->units[d], path.cores[d]);
      path.elements[d] = static_cast<double>(
          path.cores[d] == 1 ? sizes_[d] : path.shares[d] * path.flow->elements[d]);
    }
    for_rounds(path, path.flow->rows, [&] {
      for_rounds(path, path.flow->columns, [&] {
        search_stream(path);
        return true;
      });
      return true;
    });
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
          if (!(overlapped(*path.buffering, path.core_cycles, least_global_cycles(path),
                           path.buffering->least_hbm_cycles) < best_cycles_)) {
            return false;
          }
          search_steps(path);
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
      words += d == kOutputDim
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
    for (std::int64_t a = 1; a <= path.rounds[at(first)];
         a = next_steps(path.rounds[at(first)], a)) {
      steps[at(first)] = a;
      tile[at(first)] = step_tile(path, first, a);
      steps[at(second)] = steps[at(stays)] = 1;
      if (!is_better(path, least_global, hbm_cycles(steps, stays))) return;
      for (std::int64_t b = 1; b <= path.rounds[at(second)];
           b = next_steps(path.rounds[at(second)], b)) {
        steps[at(second)] = b;
        steps[at(stays)] = 1;
        tile[at(second)] = step_tile(path, second, b);
        if (!is_better(path, least_global, hbm_cycles(steps, stays))) break;
        const std::int64_t own = fewest_steps(path, tile, stays);
        if (own == 0) continue;
        steps[at(stays)] = own;
        take(path, steps, stays);
        if (own == 1) break;  // More steps of `second` only add words.
      }
    }
  }

  bool is_better(const Path& path, double global, double hbm) const {
    return overlapped(*path.buffering, path.core_cycles, global, hbm) < best_cycles_;
  }

  std::int64_t fewest_steps(const Path& path, std::array<double, 3> tile, int d) const {
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
      const double swept = nest_.window.used
                               ? swept_words(nest_, static_cast<NestOperand>(d), steps)
                               : once_[at(d)];
      words += passed_words(swept, d == stays ? 1 : static_cast<double>(steps[at(d)]),
                            d == kOutputDim);
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
  std::vector<Dealt>& dealt_;
  Counts sizes_;
  double batch_ = 1;
  std::array<double, 3> once_{};  ///< Words of each operand of one batch.
  double compulsory_ = 0, fill_ = 0;
  double global_rate_ = 0, hbm_rate_ = 0;  ///< Cycles of a word of every batch.
  std::array<FlowUnits, kArrayFlows> flows_;
  double least_core_cycles_ = kInfinity;
  ArrayFlow flow_ = ArrayFlow::weight_stationary;
  double best_cycles_ = kInfinity, best_hbm_words_ = kInfinity;
  NestMapping best_;
};

}  // namespace

MappedNest map_nest(const LoopNest& nest, const SystolicMachine& machine) {
  thread_local std::vector<Dealt> dealt;  // Kept, so that mapping allocates nothing.
  return NestSearch(nest, machine, dealt).run();
}

}  // namespace braid
