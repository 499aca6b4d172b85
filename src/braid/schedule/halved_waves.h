#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "braid/schedule/wave_blocks.h"

namespace braid {

/// Waves over even and odd stages in turn, each in blocks of their own: 1F1B, see chain_waves.h.
template <int W, int N>
class HalvedWaves : private WaveBlocks<W, N> {
 public:
  HalvedWaves(TimedPasses& timed, ChainWorkspace& workspace)
      : WaveBlocks<W, N>(timed, (timed.chain.pp + 1) / 2, workspace) {}

  [[gnu::always_inline]] inline void run() {
    w_.rows.resize(at(12 * width()));
    std::fill_n(w_.rows.data(), width(), 0.0);
    std::fill_n(w_.rows.data() + width(), width(), kNothing);
    idle_ = {w_.rows.data(), w_.rows.data() + width()};
    typename Base::template Storage<6> storage;
    Times* times = storage.get(blocks(), w_);
    Half even;
    Half odd;
    fill_half(0, even);
    fill_half(1, odd);
    for (Half* half : {&even, &odd}) {
      half->state = start(times + (half == &odd ? 3 * blocks() : 0));
    }
    for (std::int64_t round = 0; round < 2 * (m_ + pp_ - 1); round += 2) {
      alternate<0>(round, even, odd);
      alternate<1>(round + 1, odd, even);
      if (round >= 2 * (pp_ - 1) && round + 1 < 2 * m_) {
        const std::array sets = {
            Set{even.state.forward_link, even.count},  Set{even.state.device, even.count},
            Set{even.state.backward_link, even.count}, Set{odd.state.forward_link, odd.count},
            Set{odd.state.device, odd.count},          Set{odd.state.backward_link, odd.count}};
        round += 2 * leap(sets, m_ - 1 - round / 2, w_.steady);
      }
    }
    w_.state.resize(at(even.count + odd.count + W));
    gather(odd.state.device, odd.count, gather(even.state.device, even.count, w_.state.data()));
    for (std::int64_t s = 0; s < pp_; ++s) {
      timed_.passes_end_s[at(s)] = w_.state[at(s / 2 + (s % 2) * even.count)];
    }
  }

 private:
  using Base = WaveBlocks<W, N>;
  using V = WaveVectors<W>;
  using Base::blocks;
  using Base::c_;
  using Base::gather;
  using Base::hold;
  using Base::leap;
  using Base::m_;
  using Base::pp_;
  using Base::start;
  using Base::timed_;
  using Base::w_;
  using Base::width;
  using typename Base::Active;
  using typename Base::Row;
  using typename Base::Set;
  using typename Base::State;
  using typename Base::Times;

  /// Stages of one parity, in order.
  struct Half {
    Row forward{}, backward{};
    const double* ready_s = nullptr;
    State state{};
    std::int64_t count = 0;
  };

  [[gnu::always_inline]] inline void fill_half(int parity, Half& half) {
    double* rows = w_.rows.data() + (2 + 5 * parity) * width();
    std::array<double*, 5> to{};
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = rows + static_cast<std::int64_t>(i) * width();
    for (std::int64_t i = 0; i < width(); ++i) {
      const std::int64_t s = 2 * i + parity;
      const bool exists = s < pp_;
      to[0][i] = exists ? c_.forward_s[at(s)] : 0;
      to[1][i] = !exists ? kNothing : s + 1 < pp_ ? c_.hop_s[at(s)] : 0;
      to[2][i] = exists ? c_.backward_s[at(s)] : 0;
      to[3][i] = !exists ? kNothing : s > 0 ? c_.hop_s[at(s - 1)] : 0;
      to[4][i] = exists && !timed_.ready_s.empty() ? timed_.ready_s[at(s)] : 0;
    }
    half.forward = {to[0], to[1]};
    half.backward = {to[2], to[3]};
    half.ready_s = to[4];
    half.count = (pp_ + 1 - parity) / 2;
  }

  /// A round of forward passes of `mine`, the stages of this parity, and backward passes of the
  /// others.
  template <int Parity>
  [[gnu::always_inline]] inline void alternate(std::int64_t round, Half& mine, Half& others) {
    if (round < pp_) {
      forward_half<Parity>(round, mine, others, true);
      return;
    }
    if (round < 2 * m_ + pp_ - 2) forward_half<Parity>(round, mine, others, false);
    backward_half<1 - Parity>(round, others, mine);
  }

  template <int Parity>
  [[gnu::always_inline]] static inline void number_half(Times& stage, std::int64_t block) {
    V::number(stage, block * W);
    stage = stage + stage + static_cast<double>(Parity);
  }

  template <int Parity>
  [[gnu::always_inline]] inline void forward_half(std::int64_t round, Half& mine,
                                                  const Half& others, bool holds) {
    const Active active(round - 2 * m_ + 1, round);
    for (std::int64_t i = 0; i < blocks(); ++i) {
      Times distance;
      Times pass_s;
      Times hop_s;
      Times arrived;
      number_half<Parity>(distance, i);
      active.measure(distance);
      V::choose(pass_s, hop_s, distance, active.most, {mine.forward, idle_}, i * W);
      if constexpr (Parity == 0) {
        V::fill(arrived, kNothing);
        if (i > 0) arrived = others.state.forward_link[i - 1];
        V::shift_up(arrived, arrived, others.state.forward_link[i], V::kLanes);
      } else {
        arrived = others.state.forward_link[i];
      }
      Times& device = mine.state.device[i];
      V::later(device, arrived);
      device += pass_s;
      if (holds)
        hold(device, distance, active.most, mine.ready_s + i * W, round, round / 2 - i * W);
      V::later(mine.state.forward_link[i], device);
      mine.state.forward_link[i] += hop_s;
    }
  }

  template <int Parity>
  [[gnu::always_inline]] inline void backward_half(std::int64_t round, Half& mine,
                                                   const Half& others) {
    const std::int64_t first = 2 * pp_ - 1 - round;
    const Active active(first, first + 2 * m_ - 1);
    for (std::int64_t i = 0; i < blocks(); ++i) {
      Times distance;
      Times pass_s;
      Times hop_s;
      Times arrived;
      number_half<Parity>(distance, i);
      active.measure(distance);
      V::choose(pass_s, hop_s, distance, active.most, {mine.backward, idle_}, i * W);
      if constexpr (Parity == 1) {
        V::fill(arrived, kNothing);
        if (i + 1 < blocks()) arrived = others.state.backward_link[i + 1];
        V::shift_down(arrived, others.state.backward_link[i], arrived, V::kLanes);
      } else {
        arrived = others.state.backward_link[i];
      }
      V::pass(mine.state.device[i], mine.state.backward_link[i], arrived, pass_s, hop_s);
    }
  }

  Row idle_{};
};

}  // namespace braid
