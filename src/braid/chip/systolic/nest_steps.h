#pragma once

#include <array>
#include <cstdint>

#include "braid/base/infinity.h"
#include "braid/chip/systolic/loop_nest.h"
#include "braid/chip/systolic/nest_deals.h"
#include "braid/chip/systolic/nest_mapping.h"

namespace braid {

/// What a mapping has but its steps and what stays: how the nest is dealt out, and its rounds.
struct NestRounds {
  using Counts = std::array<std::int64_t, 3>;

  const Buffering* buffering = nullptr;
  const FlowTables* flow = nullptr;
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

/// The last part of map_nest()'s search: steps over rounds, and what stays in each buffer. Keeps
/// the best mapping of all rounds that it was given.
class NestSteps {
 public:
  NestSteps(const LoopNest& nest, const NestDeals& deals) : nest_(nest), deals_(deals) {}

  /// Looks for mappings below so many cycles from here on.
  void set_limit(double cycles) { best_cycles_ = cycles; }
  /// Of the best mapping, or the limit where there is none below it.
  double best_cycles() const { return best_cycles_; }
  const NestMapping& best() const { return best_; }

  /// Cycles between global buffer and L2 that no steps of these rounds stay below.
  double least_global_cycles(const NestRounds& path) const;
  /// Whether such cycles would be better than the best.
  bool is_better(const NestRounds& path, double global, double hbm) const {
    return path.buffering->overlapped(path.core_cycles, global, hbm) < best_cycles_;
  }
  /// Whether steps of these rounds, or of rounds that are multiples of them, may be better where
  /// core and global buffer take at least so many cycles.
  bool may_be_better(const NestRounds& path, double core, double global) const;

  /// All steps of the rounds that may be better: of each number only the fewest with equal largest
  /// groups, which make no tile larger and nothing pass more often.
  void search(const NestRounds& path);

 private:
  using Counts = NestRounds::Counts;

  double global_words(const NestRounds& path, int stays, double times) const;
  double step_tile(const NestRounds& path, int d, std::int64_t steps) const;
  bool step_fits(const NestRounds& path, const std::array<double, 3>& tile) const;
  std::int64_t fewest_steps(const NestRounds& path, std::array<double, 3> tile, int d) const;
  double hbm_words(const Counts& steps, int stays) const;
  double hbm_cycles(const Counts& steps, int stays) const {
    return hbm_words(steps, stays) * deals_.hbm_rate;
  }
  void search(const NestRounds& path, int stays);
  void take(const NestRounds& path, const Counts& steps, int global_stays);
  void keep(const NestRounds& path, const Counts& steps, int stays, int global_stays);

  const LoopNest& nest_;
  const NestDeals& deals_;
  double best_cycles_ = kInfinity, best_hbm_words_ = kInfinity;
  NestMapping best_;
};

}  // namespace braid
