#include "braid/chip/systolic/nest_steps.h"

#include <algorithm>

#include "braid/base/index.h"
#include "braid/base/least_threshold.h"
#include "braid/chip/systolic/nest_terms.h"

namespace braid {

/// Global words of one batch with what stays there read `times` times.
double NestSteps::global_words(const NestRounds& path, int stays, double times) const {
  double words = 0;
  for (int d = 0; d < kNestDims; ++d) {
    const double turned = d == stays ? times : static_cast<double>(path.rounds[at(d)]);
    words += at(d) == kOutputDim ? passed_words(path.swept[at(d)],
                                                turned * static_cast<double>(path.cores[2]), true)
                                 : path.swept[at(d)] * turned;
  }
  return words;
}

double NestSteps::least_global_cycles(const NestRounds& path) const {
  return deals_.global_rate *
         std::min({global_words(path, 0, 1), global_words(path, 1, 1), global_words(path, 2, 1)});
}

bool NestSteps::may_be_better(const NestRounds& path, double core, double global) const {
  Counts round{};
  for (std::size_t d = 0; d < 3; ++d) {
    round[d] = path.cores[d] * path.piece[d] * path.flow->units.elements[d];
  }
  return deals_.steps_may_take_less(*path.buffering, static_cast<double>(path.batch_cores), round,
                                    {core, global, best_cycles_});
}

/// Elements of a step's tile along d.
double NestSteps::step_tile(const NestRounds& path, int d, std::int64_t steps) const {
  const std::int64_t together =
      quotient_up(path.rounds[at(d)], steps) * path.cores[at(d)] * path.piece[at(d)];
  return static_cast<double>(
      std::min(deals_.sizes[at(d)], together * path.flow->units.elements[at(d)]));
}

bool NestSteps::step_fits(const NestRounds& path, const std::array<double, 3>& tile) const {
  double words = 0;
  for (int operand = 0; operand < kNestDims; ++operand) {
    words += tile_words(nest_, static_cast<NestOperand>(operand), tile);
  }
  return words * static_cast<double>(path.batch_cores) <= path.buffering->global_words;
}

void NestSteps::search(const NestRounds& path) {
  const std::array<double, 3> whole = {static_cast<double>(deals_.sizes[0]),
                                       static_cast<double>(deals_.sizes[1]),
                                       static_cast<double>(deals_.sizes[2])};
  if (step_fits(path, whole)) {
    take(path, {1, 1, 1}, 0);
    return;
  }
  for (int stays = 0; stays < kNestDims; ++stays) search(path, stays);
}

/// With `stays` in the global buffer: steps of the two dimensions that turn outside. Of its own
/// dimension the fewest that fit: they make fewer words in the L2 levels and none in HBM's.
void NestSteps::search(const NestRounds& path, int stays) {
  const int first = (stays + 1) % kNestDims, second = (stays + 2) % kNestDims;
  const double least_global = least_global_cycles(path);
  Counts steps{};
  std::array<double, 3> tile{};
  tile[at(second)] = step_tile(path, second, path.rounds[at(second)]);
  tile[at(stays)] = step_tile(path, stays, path.rounds[at(stays)]);
  for (std::int64_t a = fewest_steps(path, tile, first); a > 0 && a <= path.rounds[at(first)];
       a = next_pieces(path.rounds[at(first)], a)) {
    steps[at(first)] = a;
    tile[at(first)] = step_tile(path, first, a);
    tile[at(stays)] = step_tile(path, stays, path.rounds[at(stays)]);
    steps[at(second)] = steps[at(stays)] = 1;
    if (!is_better(path, least_global, hbm_cycles(steps, stays))) return;
    for (std::int64_t b = fewest_steps(path, tile, second); b > 0 && b <= path.rounds[at(second)];
         b = next_pieces(path.rounds[at(second)], b)) {
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

/// Fewest steps of dimension d with which a tile of such extents along the others fits; 0: none.
std::int64_t NestSteps::fewest_steps(const NestRounds& path, std::array<double, 3> tile,
                                     int d) const {
  if (!nest_.window.used) {
    const double x = tile[at((d + 1) % 3)], y = tile[at((d + 2) % 3)];
    const double longest =
        (path.buffering->global_words / static_cast<double>(path.batch_cores) - x * y) / (x + y);
    if (longest >= static_cast<double>(deals_.sizes[at(d)])) return 1;
    const std::int64_t of_round =
        path.cores[at(d)] * path.piece[at(d)] * path.flow->units.elements[at(d)];
    if (longest < static_cast<double>(std::min(of_round, deals_.sizes[at(d)]))) return 0;
    return quotient_up(path.rounds[at(d)], static_cast<std::int64_t>(longest) / of_round);
  }
  const auto fits = [&](std::int64_t steps) {
    tile[at(d)] = step_tile(path, d, steps);
    return step_fits(path, tile);
  };
  const std::int64_t most = path.rounds[at(d)];
  return fits(most) ? first_where<std::int64_t>(1, most, fits) : 0;
}

double NestSteps::hbm_words(const Counts& steps, int stays) const {
  double words = 0;
  for (int d = 0; d < kNestDims; ++d) {
    if (is_on_chip(nest_, static_cast<NestOperand>(d))) continue;
    const double swept = nest_.window.used ? swept_words(nest_, static_cast<NestOperand>(d), steps)
                                           : deals_.once[at(d)];
    words += passed_words(swept, d == stays ? 1 : static_cast<double>(steps[at(d)]),
                          at(d) == kOutputDim);
  }
  return words;
}
/// Weighs every choice of what stays in L2.
void NestSteps::take(const NestRounds& path, const Counts& steps, int global_stays) {
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

void NestSteps::keep(const NestRounds& path, const Counts& steps, int stays, int global_stays) {
  best_ = {.flow = path.flow->flow,
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

}  // namespace braid
