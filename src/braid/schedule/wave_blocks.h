#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "braid/base/index.h"
#include "braid/schedule/chain_time.h"
#include "braid/schedule/wave_vectors.h"

namespace braid {

/// What all waves (see chain_waves.h) keep: times of stages in vectors of W, as many as one row of
/// `count` stages needs. N: that number of vectors when it is known beforehand, else 0. Everything
/// is inlined into functions that are compiled for the processors that have such vectors.
template <int W, int N>
class WaveBlocks {
 public:
  WaveBlocks(TimedPasses& timed, std::int64_t count, ChainWorkspace& workspace)
      : timed_(timed),
        c_(timed.chain),
        w_(workspace),
        pp_(timed.chain.pp),
        m_(timed.chain.num_micro_batches),
        blocks_(blocks_of(count)) {}

  static std::int64_t blocks_of(std::int64_t count) { return (count + W - 1) / W; }

 protected:
  using V = WaveVectors<W>;
  using Times = typename V::Times;
  using Row = typename V::Row;
  using Rows = typename V::Rows;
  using Active = typename V::Active;

  /// Times of all blocks.
  struct State {
    Times* forward_link = nullptr;
    Times* device = nullptr;
    Times* backward_link = nullptr;
  };

  std::int64_t blocks() const { return N > 0 ? N : blocks_; }
  std::int64_t width() const { return blocks() * W; }

  /// Room for `Sets` times all blocks: here where their number is known.
  template <int Sets>
  struct Storage {
    Times known[Sets * std::max(N, 1)];

    [[gnu::always_inline]] inline Times* get(std::int64_t blocks, ChainWorkspace& workspace) {
      if constexpr (N > 0) return known;
      workspace.blocks.resize(at((Sets * blocks * W + 7) / 8));
      assert(reinterpret_cast<std::uintptr_t>(workspace.blocks.data()) % alignof(Times) == 0);
      return reinterpret_cast<Times*>(workspace.blocks.data());  // Only ever Times.
    }
  };

  /// Links and devices of all blocks, idle so far.
  [[gnu::always_inline]] inline State start(Times* storage) const {
    const State state{storage, storage + blocks(), storage + 2 * blocks()};
    for (std::int64_t i = 0; i < blocks(); ++i) {
      V::fill(state.forward_link[i], kNothing);
      V::fill(state.device[i], 0);
      V::fill(state.backward_link[i], kNothing);
    }
    return state;
  }

  /// Copies the times of `count` stages, and perhaps some after them.
  [[gnu::always_inline]] inline double* gather(const Times* from, std::int64_t count,
                                               double* to) const {
    for (std::int64_t i = 0; i < blocks(); ++i) {
      if (i * W < count) std::memcpy(to + i * W, &from[i], sizeof *from);
    }
    return to + count;
  }
  [[gnu::always_inline]] inline const double* scatter(const double* from, std::int64_t count,
                                                      Times* to) const {
    for (std::int64_t s = 0; s < count; ++s) to[s / W][s % W] = from[s];
    return from + count;
  }

  /// Times of `count` stages.
  struct Set {
    Times* times = nullptr;
    std::int64_t count = 0;
  };

  /// Leaps over as many of the `remaining` rounds (or cycles) as the steady state allows, given
  /// all times that the following rounds depend on.
  template <std::size_t Size>
  [[gnu::always_inline]] inline std::int64_t leap(const std::array<Set, Size>& sets,
                                                  std::int64_t remaining, SteadyState& steady) {
    std::int64_t count = 0;
    for (const Set& set : sets) count += set.count;
    w_.state.resize(at(count + W));
    double* to = w_.state.data();
    for (const Set& set : sets) to = gather(set.times, set.count, to);
    const std::int64_t rounds = steady.leap({w_.state.data(), at(count)}, remaining);
    if (rounds > 0) {
      const double* from = w_.state.data();
      for (const Set& set : sets) from = scatter(from, set.count, set.times);
    }
    return rounds;
  }

  /// Stage `newest`, in `lane`, has just ended its first pass, which waits for its parameters; so
  /// have others that are active, whose passes end after those anyway.
  [[gnu::always_inline]] inline void hold(Times& device, const Times& distance, double most,
                                          const double* ready_s, std::int64_t newest,
                                          std::int64_t lane) {
    const Times ended = device;
    if (lane >= 0 && lane < W) timed_.first_forward_end_s[at(newest)] = ended[lane];
    Times ready;
    const Times none{};
    V::load(ready, ready_s);
    ready = distance <= most ? ready : none;
    V::later(device, ready);
  }

  TimedPasses& timed_;
  const ChainTimes& c_;
  ChainWorkspace& w_;
  const std::int64_t pp_;
  const std::int64_t m_;

 private:
  const std::int64_t blocks_;
};

}  // namespace braid
