#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "braid/schedule/wave_blocks.h"

namespace braid {

/// Waves over the stages in order: GPipe and interleaved schedules, see chain_waves.h.
template <int W, int N>
class StraightWaves : private WaveBlocks<W, N> {
 public:
  StraightWaves(TimedPasses& timed, ChainWorkspace& workspace)
      : WaveBlocks<W, N>(timed, timed.chain.pp, workspace) {}

  [[gnu::always_inline]] inline void run() {
    fill_rows();
    typename Base::template Storage<3> storage;
    state_ = start(storage.get(blocks(), w_));
    if (c_.schedule == ScheduleKind::gpipe) {
      run_gpipe();
    } else {
      run_interleaved();
    }
    w_.state.resize(at(pp_ + W));
    gather(state_.device, pp_, w_.state.data());
    std::copy_n(w_.state.data(), pp_, timed_.passes_end_s.data());
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
  using typename Base::Rows;
  using typename Base::Set;
  using typename Base::State;
  using typename Base::Times;

  /// Forward passes: stages from `first` to `last` are those inside. The first
  /// stage gets what the last one has sent, or nothing. Passes end no earlier than `ready_s` says,
  /// which may be null.
  [[gnu::always_inline]] inline void forward(const State& state, const Rows& rows,
                                             std::int64_t first, std::int64_t last, bool from_last,
                                             const double* ready_s) {
    Times before;
    V::fill(before, kNothing);
    if (from_last) {
      if (pp_ % W == 0) {
        before = state.forward_link[blocks() - 1];
      } else {
        // A copy, so that choosing a lane by number keeps that alone in memory.
        const Times link = state.forward_link[blocks() - 1];
        V::fill(before, link[(pp_ - 1) % W]);
      }
    }
    const Active active(first, last);
    for (std::int64_t i = blocks() - 1; i >= 0; --i) {
      Times distance;
      V::number(distance, i * W);
      active.measure(distance);
      Times pass_s;
      Times hop_s;
      Times arrived;
      V::choose(pass_s, hop_s, distance, active.most, rows, i * W);
      V::shift_up(arrived, i > 0 ? state.forward_link[i - 1] : before, state.forward_link[i],
                  V::kLanes);
      V::later(state.device[i], arrived);
      state.device[i] += pass_s;
      if (ready_s != nullptr)
        hold(state.device[i], distance, active.most, ready_s + i * W, last, last - i * W);
      V::later(state.forward_link[i], state.device[i]);
      state.forward_link[i] += hop_s;
    }
  }

  /// Backward passes, likewise. The last stage gets what the first one has sent, or nothing.
  [[gnu::always_inline]] inline void backward(const State& state, const Rows& rows,
                                              std::int64_t first, std::int64_t last,
                                              bool from_first) {
    Times after;
    V::fill(after, from_first ? state.backward_link[0][0] : kNothing);
    const Active active(first, last);
    for (std::int64_t i = 0; i < blocks(); ++i) {
      Times distance;
      V::number(distance, i * W);
      active.measure(distance);
      Times pass_s;
      Times hop_s;
      Times arrived;
      V::choose(pass_s, hop_s, distance, active.most, rows, i * W);
      const bool is_end = i + 1 == blocks();
      V::shift_down(arrived, state.backward_link[i], is_end ? after : state.backward_link[i + 1],
                    V::kLanes);
      if (is_end && pp_ % W != 0) {
        Times stage;
        V::number(stage, i * W);
        arrived = stage == static_cast<double>(pp_ - 1) ? after : arrived;
      }
      V::pass(state.device[i], state.backward_link[i], arrived, pass_s, hop_s);
    }
  }

  /// Rows of all chunks and one that does nothing, in w_.rows; padded by what no stage sees.
  [[gnu::always_inline]] inline void fill_rows() {
    const std::int64_t chunks = pp_ * c_.vp;
    const std::int64_t stride = chunks + width();
    w_.rows.resize(at(4 * stride + 3 * width()));
    double* to = w_.rows.data();
    std::fill_n(to, width(), 0.0);
    std::fill_n(to + width(), width(), kNothing);
    idle_ = {to, to + width()};
    to += 2 * width();
    const auto add = [&](const double* from, std::int64_t count) {
      const double* begin = to;
      to = std::copy_n(from, count, to);
      to = std::fill_n(to, stride - count, 0.0);
      return begin;
    };
    forward_ = {add(c_.forward_s.data(), chunks), add(c_.hop_s.data(), chunks - 1)};
    backward_.pass_s = add(c_.backward_s.data(), chunks);
    *to = 0;
    std::fill_n(std::copy_n(c_.hop_s.data(), chunks - 1, to + 1), width(), 0.0);
    backward_.hop_s = to;
    to += stride;
    ready_ = to;
    std::fill_n(to, width(), 0.0);
    std::copy(timed_.ready_s.begin(), timed_.ready_s.end(), to);
  }

  [[gnu::always_inline]] inline void run_gpipe() {
    for (std::int64_t round = 0; round < m_ + pp_ - 1; ++round) {
      if (round < pp_) {
        forward(state_, {forward_, idle_}, round - m_ + 1, round, false, ready_);
      } else {
        forward(state_, {forward_, idle_}, round - m_ + 1, round, false, nullptr);
      }
      if (round >= pp_ - 1 && round < m_) {
        const std::array sets = {Set{state_.forward_link, pp_}, Set{state_.device, pp_}};
        round += leap(sets, m_ - 1 - round, w_.steady);
      }
    }
    w_.steady.restart();
    for (std::int64_t round = 0; round < m_ + pp_ - 1; ++round) {
      const std::int64_t first = pp_ - 1 - round;
      backward(state_, {backward_, idle_}, first, first + m_ - 1, false);
      if (round >= pp_ - 1 && round < m_) {
        const std::array sets = {Set{state_.device, pp_}, Set{state_.backward_link, pp_}};
        round += leap(sets, m_ - 1 - round, w_.steady);
      }
    }
  }

  /// The k-th pass of a stage in one direction belongs to turn k / pp, and turn q to chunk q mod
  /// vp. In a round the first stages of a direction have got to the next turn, the others have not.
  [[gnu::always_inline]] inline void run_interleaved() {
    const std::int64_t vp = c_.vp;
    const std::int64_t turns = m_ / pp_ * vp;
    w_.alike.find(c_.forward_s, c_.backward_s, c_.hop_s, pp_, vp);
    const auto leap_alike = [&](std::int64_t turn, const auto& sets) {
      return w_.alike.leap(turn % vp, [&](SteadyState& steady, std::int64_t following) {
        return leap(sets, following, steady);
      });
    };
    const std::array all = {Set{state_.forward_link, pp_}, Set{state_.device, pp_},
                            Set{state_.backward_link, pp_}};
    for (std::int64_t t = 0; t < pp_; ++t) forward(state_, {forward_, idle_}, 0, t, false, ready_);
    for (std::int64_t q = 1; q < vp - 1; ++q) {
      const Turn ahead = forward_turn(q, turns);
      run_turn(&ahead, nullptr, nullptr);
      q += leap_alike(q, std::array{all[0], all[1]});
    }
    for (std::int64_t q = vp - 1; q <= turns; ++q) {
      const Turn ahead = forward_turn(q, turns);
      const Turn back = backward_turn(q - vp, turns);
      const Turn after = backward_turn(q - vp + 1, turns);
      run_turn(&ahead, &back, &after);
      if ((q + 1) % vp == 0 && q > vp && q < turns) {
        q += vp * leap(all, (turns - 1 - q) / vp, w_.steady);
      } else {
        q += leap_alike(q, all);
      }
    }
    for (std::int64_t q = turns + 1; q <= turns + vp; ++q) {
      const Turn back = backward_turn(q - vp, turns);
      const Turn after = backward_turn(q - vp + 1, turns);
      run_turn(nullptr, &back, &after);
      q += leap_alike(q, std::array{all[1], all[2]});
    }
  }

  /// What stages do in pp rounds of one direction.
  struct Turn {
    Row row, previous;   ///< Of the stages that have got to this turn, and of the others.
    bool wraps = false;  ///< The first chunk of the turn follows on another one.
  };
  [[gnu::always_inline]] inline Turn forward_turn(std::int64_t turn, std::int64_t turns) const {
    const auto row_of = [&](std::int64_t q) {
      const std::int64_t first = q % c_.vp * pp_;
      return q < turns ? Row{forward_.pass_s + first, forward_.hop_s + first} : idle_;
    };
    return {row_of(turn), row_of(turn - 1), turn % c_.vp != 0};
  }
  [[gnu::always_inline]] inline Turn backward_turn(std::int64_t turn, std::int64_t turns) const {
    const auto row_of = [&](std::int64_t q) {
      if (q < 0 || q >= turns) return idle_;
      const std::int64_t first = (c_.vp - 1 - q % c_.vp) * pp_;
      return Row{backward_.pass_s + first, backward_.hop_s + first};
    };
    return {row_of(turn), row_of(turn - 1), turn > 0 && turn % c_.vp != 0};
  }

  /// Calls body(state) with state where compilers can keep it in registers.
  template <typename Body>
  [[gnu::always_inline]] inline void in_registers(const Body& body) {
    if constexpr (N > 0) {
      Times times[3][N];
      for (int i = 0; i < N; ++i) {
        times[0][i] = state_.forward_link[i];
        times[1][i] = state_.device[i];
        times[2][i] = state_.backward_link[i];
      }
      body(State{times[0], times[1], times[2]});
      for (int i = 0; i < N; ++i) {
        state_.forward_link[i] = times[0][i];
        state_.device[i] = times[1][i];
        state_.backward_link[i] = times[2][i];
      }
    } else {
      body(state_);
    }
  }

  /// Rounds q·pp … q·pp + pp - 1, forwards and backwards or in one direction. The last stage gets
  /// to its next backward turn, `after`, in the last of them.
  [[gnu::always_inline]] inline void run_turn(const Turn* ahead, const Turn* back,
                                              const Turn* after) {
    in_registers([&](const State& state) __attribute__((always_inline)) {
      for (std::int64_t t = 0; t < pp_; ++t) {
        if (ahead != nullptr) {
          forward(state, {ahead->row, ahead->previous}, 0, t, ahead->wraps, nullptr);
        }
        if (back == nullptr) continue;
        const Turn& turn = t + 1 < pp_ ? *back : *after;
        const std::int64_t first = t + 1 < pp_ ? pp_ - 2 - t : pp_ - 1;
        backward(state, {turn.row, turn.previous}, first, pp_ - 1, turn.wraps);
      }
    });
  }

  State state_{};
  Row idle_{}, forward_{}, backward_{};
  const double* ready_ = nullptr;
};

}  // namespace braid
