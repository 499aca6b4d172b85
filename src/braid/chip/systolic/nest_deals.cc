#include "braid/chip/systolic/nest_deals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "braid/base/hash_mix.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"

namespace braid {
namespace {

double cycles_of_word(double words_per_cycle) {
  return words_per_cycle > 0 ? 1 / words_per_cycle : 0;
}

int doublings_of(std::int64_t count) {
  return std::bit_width(static_cast<std::uint64_t>(count)) - 1;
}

/// Steps over `size` by the longest tile of whole units; 0 where not even one fits.
std::int64_t steps_of(std::int64_t size, std::int64_t unit, double longest) {
  if (longest >= static_cast<double>(size)) return 1;
  if (longest < static_cast<double>(unit)) return 0;
  return quotient_up(size, static_cast<std::int64_t>(longest) / unit * unit);
}

}  // namespace

NestDeals::NestDeals(const LoopNest& nest, const SystolicMachine& machine)
    : sizes{nest.m, nest.n, nest.k}, nest_(nest), machine_(machine) {
  const auto batch = static_cast<double>(nest.batch);
  for (int d = 0; d < kNestDims; ++d) {
    once[at(d)] = swept_words(nest, static_cast<NestOperand>(d), {1, 1, 1});
    once_all_ += once[at(d)];
  }
  hbm_once_ = compulsory_hbm_words(nest) / batch;
  fill = fill_cycles(machine.array);
  array_rate = cycles_of_word(machine.array.words_per_cycle);
  global_rate = cycles_of_word(machine.buffers.global_words_per_cycle) * batch;
  hbm_rate = cycles_of_word(machine.buffers.hbm_words_per_cycle) * batch;
  set_flows();
  find_least_deal();
  set_bufferings();
}

double NestDeals::core_cycles(const LeastCore& core) const {
  return std::max(core.passes + fill, core.l2);
}

void NestDeals::set_flows() {
  doublings_ = doublings_of(machine_.cores);
  const bool turned_is_same =
      machine_.array.rows == machine_.array.columns &&
      (machine_.array.flows >> static_cast<int>(ArrayFlow::output_stationary) & 1) != 0;
  for (int f = 0; f < kArrayFlows; ++f) {
    if ((machine_.array.flows >> f & 1) == 0) continue;
    if (f == static_cast<int>(ArrayFlow::output_stationary_turned) && turned_is_same) continue;
    FlowTables& tables = tables_[at(flow_count_++)];
    tables.flow = static_cast<ArrayFlow>(f);
    tables.units = flow_units(nest_, machine_.array, static_cast<ArrayFlow>(f));
    for (std::size_t d = 0; d < 4; ++d) {
      const std::int64_t units = d == kBatchDim ? nest_.batch : tables.units.units[d];
      tables.most[d] = std::min(doublings_, doublings_of(units));
      for (int log = 0; log <= tables.most[d]; ++log) {
        const std::int64_t share = (units + (std::int64_t{1} << log) - 1) >> log;
        tables.share[d][at(log)] = static_cast<double>(share);
        if (d == kBatchDim) continue;
        tables.elements[d][at(log)] =
            static_cast<double>(log == 0 ? sizes[d] : share * tables.units.elements[d]);
      }
    }
  }
}

LeastCore NestDeals::least_core(const Deal& deal) const {
  const FlowTables& tables = tables_[at(deal.flow)];
  const std::array<int, 4>& log = deal.log;
  const FlowUnits& flow = tables.units;
  const auto row = at(flow.rows), column = at(flow.columns), stream = at(flow.streamed);
  const double rows = tables.share[row][at(log[row])];
  const double columns = tables.share[column][at(log[column])];
  const double batch = tables.share[kBatchDim][at(log[kBatchDim])];
  const double passes =
      batch * rows * columns *
      std::max(tables.share[stream][at(log[stream])], static_cast<double>(machine_.array.rows));
  if (!(array_rate > 0)) return {passes, 0};
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
  return {passes, batch * words * array_rate};
}

/// Global cycles that no rounds stay below. With what stays chosen, V multiplications read the
/// operands that lack x and y V/(rounds' tile along x) and V/(along y) times; both tiles together
/// are a tile of the operand that stays of all cores, V/x + V/y ≥ 2V/√(xy).
double NestDeals::least_global_cycles(const Buffering& buffering,
                                      const std::array<int, 4>& log) const {
  if (nest_.window.used) return buffering.least_global_cycles;
  const double volume =
      static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
  double least = kInfinity;
  for (std::size_t stays = 0; stays < 3; ++stays) {
    const std::size_t x = (stays + 1) % 3, y = (stays + 2) % 3;
    const double tile =
        buffering.l2_words * static_cast<double>(std::int64_t{1} << (log[x] + log[y]));
    const double output = stays == kOutputDim ? 0 : once[kOutputDim];
    const double weight = stays == kOutputDim ? 1 : 2;
    least = std::min(least, once[stays] - output + 2 * volume * std::sqrt(weight / tile));
  }
  return std::max(buffering.least_global_cycles, least * global_rate);
}

/// The deal with the least core cycles: as none grows with more cores, one that has as many of k
/// as are left.
void NestDeals::find_least_deal() {
  least_core_cycles_ = kInfinity;
  for (int f = 0; f < flow_count_; ++f) {
    const FlowTables& tables = tables_[at(f)];
    std::array<int, 4> log{};
    for (log[3] = 0; log[3] <= tables.most[3]; ++log[3]) {
      for (log[0] = 0; log[0] <= std::min(tables.most[0], doublings_ - log[3]); ++log[0]) {
        const int rest = doublings_ - log[3] - log[0];
        for (log[1] = 0; log[1] <= std::min(tables.most[1], rest); ++log[1]) {
          log[2] = std::min(tables.most[2], rest - log[1]);
          const double cycles = core_cycles(least_core({f, log}));
          if (cycles < least_core_cycles_) {
            least_core_cycles_ = cycles;
            least_deal_ = {f, log};
          }
        }
      }
    }
  }
}

bool NestDeals::core_may_take_less(const Buffering& buffering, const Deal& deal,
                                   double cycles) const {
  return buffering.overlapped(core_cycles(least_core(deal)), buffering.least_global_cycles,
                              buffering.least_hbm_cycles) < cycles;
}

bool NestDeals::may_take_less(const Buffering& buffering, const Deal& deal, double cycles) const {
  const FlowUnits& units = tables_[at(deal.flow)].units;
  const double core = core_cycles(least_core(deal));
  const double global = least_global_cycles(buffering, deal.log);
  if (!(buffering.overlapped(core, global, buffering.least_hbm_cycles) < cycles)) return false;
  Counts round{};
  for (std::size_t d = 0; d < 3; ++d) round[d] = units.elements[d] << deal.log[d];
  return steps_may_take_less(buffering, static_cast<double>(std::int64_t{1} << deal.log[kBatchDim]),
                             round, {core, global, cycles});
}

bool NestDeals::steps_may_take_less(const Buffering& buffering, double batch_cores,
                                    const std::array<std::int64_t, 3>& round,
                                    const RoundCycles& of) const {
  std::array<double, 3> least_tile{};
  for (std::size_t d = 0; d < 3; ++d) {
    least_tile[d] = static_cast<double>(std::min(sizes[d], round[d]));
  }
  const double hbm = least_hbm_cycles(buffering, batch_cores, least_tile);
  if (!(buffering.overlapped(of.core, of.global, hbm) < of.limit)) return false;
  // Whole steps seldom take so much more; the closer bound is not worth its time then.
  constexpr double rounded_up = 1.25;
  if (buffering.overlapped(of.core, of.global, rounded_up * hbm) < of.limit) return true;
  const double stepped = hbm_rate * least_hbm_words(buffering.global_words / batch_cores, round);
  return buffering.overlapped(of.core, of.global, stepped) < of.limit;
}

void NestDeals::set_bufferings() {
  for (std::size_t i = 0; i < bufferings_.size(); ++i) {
    Buffering& buffering = bufferings_[i];
    buffering.l2_doubled = i < 2;
    buffering.global_doubled = i % 2 == 0;
    buffering.l2_words = machine_.buffers.l2_words / (buffering.l2_doubled ? 2 : 1);
    buffering.global_words = machine_.buffers.global_words / (buffering.global_doubled ? 2 : 1);
    buffering.least_global_cycles = once_all_ * global_rate;
    buffering.least_hbm_cycles = hbm_once_ * hbm_rate;
  }
}

void NestDeals::bound_hbm() {
  const double whole = least_hbm_words(machine_.buffers.global_words, {1, 1, 1});
  const double half = least_hbm_words(machine_.buffers.global_words / 2, {1, 1, 1});
  for (Buffering& buffering : bufferings_) {
    buffering.least_hbm_cycles = hbm_rate * (buffering.global_doubled ? half : whole);
  }
}

double NestDeals::bound_of(const Buffering& buffering) const {
  return buffering.overlapped(least_core_cycles_, buffering.least_global_cycles,
                              buffering.least_hbm_cycles);
}

/// Fewest words, of one batch, between HBM and a buffer of such tiles, when these are whole
/// multiples of `unit` elements or a whole dimension: what any steps of any rounds make of deals
/// with such rounds of one unit. With what stays chosen, its own dimension is best cut finest.
double NestDeals::fewest_hbm_words(double words, const Counts& unit) const {
  double least = kInfinity;
  for (std::size_t stays = 0; stays < 3; ++stays) {
    std::size_t first = (stays + 1) % 3, second = (stays + 2) % 3;
    // One of both is gone through: the one of fewer units.
    if (sizes[first] * unit[second] > sizes[second] * unit[first]) std::swap(first, second);
    const auto own = static_cast<double>(std::min(sizes[stays], unit[stays]));
    for (std::int64_t tile = sizes[first]; tile > 0;) {
      const std::int64_t steps = quotient_up(sizes[first], tile);
      // The smallest tile of so many steps.
      const std::int64_t units = quotient_up(quotient_up(sizes[first], steps), unit[first]);
      const auto a = static_cast<double>(std::min(sizes[first], units * unit[first]));
      tile = (units - 1) * unit[first];
      // Smaller tiles only pass more often.
      const double passed = once[stays] + moved_words(first, static_cast<double>(steps));
      if (!(passed + once[second] < least)) break;
      const double longest = (words - a * own) / (a + own);
      const std::int64_t others = steps_of(sizes[second], unit[second], longest);
      if (others == 0) continue;
      least = std::min(least, passed + moved_words(second, static_cast<double>(others)));
    }
  }
  return least;
}

double NestDeals::least_hbm_words(double words, const Counts& unit) const {
  if (has_shared_words() || once_all_ <= words) return hbm_once_;
  HashMix mix;
  for (const std::int64_t elements : unit) mix.add(static_cast<std::uint64_t>(elements));
  KnownWords& known = known_words_[mix.value() % known_words_.size()];
  if (known.unit != unit || known.buffer_words != words) {
    known = {unit, words, fewest_hbm_words(words, unit)};
  }
  return known.least;
}

double NestDeals::least_hbm_cycles(const Buffering& buffering, double batch_cores,
                                   const std::array<double, 3>& round) const {
  const double words = buffering.global_words / batch_cores;
  if (has_shared_words() || once_all_ <= words) {
    return buffering.least_hbm_cycles;
  }
  const double volume = once[0] * static_cast<double>(sizes[0]);
  double least = kInfinity;
  for (std::size_t stays = 0; stays < 3; ++stays) {
    const double s = round[stays];
    const double root = std::sqrt(s * s + words) - s;
    const bool output = stays == kOutputDim;
    least = std::min(least, once[stays] - (output ? 0 : once[kOutputDim]) +
                                (output ? 2 : 2 * std::sqrt(2.0)) * volume / root);
  }
  return std::max(buffering.least_hbm_cycles, least * hbm_rate);
}

}  // namespace braid
