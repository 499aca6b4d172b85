#include "braid/schedule/chain_waves.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "braid/schedule/wave_vectors.h"

namespace braid {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Waves over `blocks` vectors of W stages each; N: that number when it is known beforehand, else
/// 0. Everything is inlined into functions that are compiled for the processors that have such
/// vectors.
template <int W, int N>
class Waves {
 public:
  Waves(TimedPasses& timed, ChainWorkspace& workspace)
      : timed_(timed),
        c_(timed.chain),
        w_(workspace),
        pp_(timed.chain.pp),
        m_(timed.chain.num_micro_batches),
        blocks_(blocks_of(timed.chain)) {}

  static std::int64_t blocks_of(const ChainTimes& chain) {
    const bool halved = chain.vp == 1 && chain.schedule != ScheduleKind::gpipe;
    const std::int64_t stages = halved ? (chain.pp + 1) / 2 : chain.pp;
    return (stages + W - 1) / W;
  }

  [[gnu::always_inline]] inline void run() {
    w_.steady.restart();
    timed_.first_forward_end_s.resize(at(pp_));
    timed_.passes_end_s.resize(at(pp_));
    if (c_.schedule == ScheduleKind::gpipe) {
      run_gpipe();
    } else if (c_.vp == 1) {
      run_1f1b();
    } else {
      run_interleaved();
    }
  }

 private:
  using V = WaveVectors<W>;
  using Times = typename V::Times;
  using Row = typename V::Row;
  using Active = typename V::Active;

  /// Times of all blocks.
  struct State {
    Times* forward_link;
    Times* device;
    Times* backward_link;
  };

  // Sizes and storage.

  std::int64_t blocks() const { return N > 0 ? N : blocks_; }
  std::int64_t width() const { return blocks() * W; }

  /// Room for `Sets` times all blocks: here where their number is known.
  template <int Sets>
  struct Storage {
    Times known[Sets * std::max(N, 1)];

    [[gnu::always_inline]] inline Times* get(std::int64_t blocks, ChainWorkspace& workspace) {
      if constexpr (N > 0) return known;
      workspace.blocks.resize(at((Sets * blocks * W + 7) / 8));
      return reinterpret_cast<Times*>(workspace.blocks.data());  // Aligned, and only ever Times.
    }
  };

  // Rounds over stages in order: GPipe and interleaved.

  /// Forward passes: stages from `first` to `last` do as in `row`, others as in `other`. The first
  /// stage gets what the last one has sent, or nothing. Passes end no earlier than `ready_s` says,
  /// which may be null.
  [[gnu::always_inline]] inline void forward(const State& state, const Row& row, const Row& other,
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
      V::choose(pass_s, hop_s, distance, active.most, row, other, i * W);
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

  /// Backward passes, likewise. The last stage gets what the first one has sent, or nothing.
  [[gnu::always_inline]] inline void backward(const State& state, const Row& row, const Row& other,
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
      V::choose(pass_s, hop_s, distance, active.most, row, other, i * W);
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

  /// Places of the links and devices of `blocks` blocks, idle so far.
  [[gnu::always_inline]] inline void start(Times* storage) {
    state_ = {storage, storage + blocks(), storage + 2 * blocks()};
    for (std::int64_t i = 0; i < blocks(); ++i) {
      V::fill(state_.forward_link[i], kNothing);
      V::fill(state_.device[i], 0);
      V::fill(state_.backward_link[i], kNothing);
    }
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
                                                  std::int64_t remaining) {
    std::int64_t count = 0;
    for (const Set& set : sets) count += set.count;
    w_.state.resize(at(count + W));
    double* to = w_.state.data();
    for (const Set& set : sets) to = gather(set.times, set.count, to);
    const std::int64_t rounds = w_.steady.leap({w_.state.data(), at(count)}, remaining);
    if (rounds > 0) {
      const double* from = w_.state.data();
      for (const Set& set : sets) from = scatter(from, set.count, set.times);
    }
    return rounds;
  }

  [[gnu::always_inline]] inline void finish() {
    w_.state.resize(at(pp_ + W));
    gather(state_.device, pp_, w_.state.data());
    std::copy_n(w_.state.data(), pp_, timed_.passes_end_s.data());
  }

  [[gnu::always_inline]] inline void run_gpipe() {
    fill_rows();
    Storage<3> storage;
    start(storage.get(blocks(), w_));
    for (std::int64_t round = 0; round < m_ + pp_ - 1; ++round) {
      if (round < pp_) {
        forward(state_, forward_, idle_, round - m_ + 1, round, false, ready_);
      } else {
        forward(state_, forward_, idle_, round - m_ + 1, round, false, nullptr);
      }
      if (round >= pp_ - 1 && round < m_) {
        const std::array sets = {Set{state_.forward_link, pp_}, Set{state_.device, pp_}};
        round += leap(sets, m_ - 1 - round);
      }
    }
    w_.steady.restart();
    for (std::int64_t round = 0; round < m_ + pp_ - 1; ++round) {
      const std::int64_t first = pp_ - 1 - round;
      backward(state_, backward_, idle_, first, first + m_ - 1, false);
      if (round >= pp_ - 1 && round < m_) {
        const std::array sets = {Set{state_.device, pp_}, Set{state_.backward_link, pp_}};
        round += leap(sets, m_ - 1 - round);
      }
    }
    finish();
  }

  /// The k-th pass of a stage in one direction belongs to turn k / pp, and turn q to chunk q mod
  /// vp. In a round the first stages of a direction have got to the next turn, the others have not.
  [[gnu::always_inline]] inline void run_interleaved() {
    fill_rows();
    Storage<3> storage;
    start(storage.get(blocks(), w_));
    const std::int64_t vp = c_.vp;
    const std::int64_t turns = m_ / pp_ * vp;
    for (std::int64_t t = 0; t < pp_; ++t) forward(state_, forward_, idle_, 0, t, false, ready_);
    for (std::int64_t q = 1; q < vp - 1; ++q) {
      const Turn ahead = forward_turn(q, turns);
      run_turn(&ahead, nullptr, nullptr);
    }
    for (std::int64_t q = vp - 1; q <= turns; ++q) {
      const Turn ahead = forward_turn(q, turns);
      const Turn back = backward_turn(q - vp, turns);
      const Turn after = backward_turn(q - vp + 1, turns);
      run_turn(&ahead, &back, &after);
      if ((q + 1) % vp == 0 && q > vp && q < turns) {
        const std::array sets = {Set{state_.forward_link, pp_}, Set{state_.device, pp_},
                                 Set{state_.backward_link, pp_}};
        q += vp * leap(sets, (turns - 1 - q) / vp);
      }
    }
    for (std::int64_t q = turns + 1; q <= turns + vp; ++q) {
      const Turn back = backward_turn(q - vp, turns);
      const Turn after = backward_turn(q - vp + 1, turns);
      run_turn(nullptr, &back, &after);
    }
    finish();
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
          forward(state, ahead->row, ahead->previous, 0, t, ahead->wraps, nullptr);
        }
        if (back == nullptr) continue;
        const Turn& turn = t + 1 < pp_ ? *back : *after;
        const std::int64_t first = t + 1 < pp_ ? pp_ - 2 - t : pp_ - 1;
        backward(state, turn.row, turn.previous, first, pp_ - 1, turn.wraps);
      }
    });
  }

  // 1F1B: even and odd stages in turn, each in blocks of their own.

  /// Stages of one parity, in order.
  struct Half {
    Row forward{}, backward{};
    const double* ready_s = nullptr;
    Times* forward_link = nullptr;
    Times* device = nullptr;
    Times* backward_link = nullptr;
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

  [[gnu::always_inline]] inline void run_1f1b() {
    w_.rows.resize(at(12 * width()));
    std::fill_n(w_.rows.data(), width(), 0.0);
    std::fill_n(w_.rows.data() + width(), width(), kNothing);
    idle_ = {w_.rows.data(), w_.rows.data() + width()};
    Storage<6> storage;
    Times* times = storage.get(blocks(), w_);
    Half even;
    Half odd;
    fill_half(0, even);
    fill_half(1, odd);
    for (Half* half : {&even, &odd}) {
      start(times + (half == &odd ? 3 * blocks() : 0));
      half->forward_link = state_.forward_link;
      half->device = state_.device;
      half->backward_link = state_.backward_link;
    }
    for (std::int64_t round = 0; round < 2 * (m_ + pp_ - 1); round += 2) {
      alternate<0>(round, even, odd);
      alternate<1>(round + 1, odd, even);
      if (round >= 2 * (pp_ - 1) && round + 1 < 2 * m_) {
        const std::array sets = {
            Set{even.forward_link, even.count},  Set{even.device, even.count},
            Set{even.backward_link, even.count}, Set{odd.forward_link, odd.count},
            Set{odd.device, odd.count},          Set{odd.backward_link, odd.count}};
        round += 2 * leap(sets, m_ - 1 - round / 2);
      }
    }
    w_.state.resize(at(even.count + odd.count + W));
    gather(odd.device, odd.count, gather(even.device, even.count, w_.state.data()));
    for (std::int64_t s = 0; s < pp_; ++s) {
      timed_.passes_end_s[at(s)] = w_.state[at(s / 2 + (s % 2) * even.count)];
    }
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
      V::choose(pass_s, hop_s, distance, active.most, mine.forward, idle_, i * W);
      if constexpr (Parity == 0) {
        V::fill(arrived, kNothing);
        if (i > 0) arrived = others.forward_link[i - 1];
        V::shift_up(arrived, arrived, others.forward_link[i], V::kLanes);
      } else {
        arrived = others.forward_link[i];
      }
      Times& device = mine.device[i];
      V::later(device, arrived);
      device += pass_s;
      if (holds)
        hold(device, distance, active.most, mine.ready_s + i * W, round, round / 2 - i * W);
      V::later(mine.forward_link[i], device);
      mine.forward_link[i] += hop_s;
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
      V::choose(pass_s, hop_s, distance, active.most, mine.backward, idle_, i * W);
      if constexpr (Parity == 1) {
        V::fill(arrived, kNothing);
        if (i + 1 < blocks()) arrived = others.backward_link[i + 1];
        V::shift_down(arrived, others.backward_link[i], arrived, V::kLanes);
      } else {
        arrived = others.backward_link[i];
      }
      V::pass(mine.device[i], mine.backward_link[i], arrived, pass_s, hop_s);
    }
  }

  TimedPasses& timed_;
  const ChainTimes& c_;
  ChainWorkspace& w_;
  const std::int64_t pp_;
  const std::int64_t m_;
  const std::int64_t blocks_;
  State state_{};
  Row idle_{}, forward_{}, backward_{};
  const double* ready_ = nullptr;
};

template <int W>
[[gnu::always_inline]] inline void run_with(TimedPasses& timed, ChainWorkspace& workspace) {
  switch (Waves<W, 0>::blocks_of(timed.chain)) {
    case 1:
      return Waves<W, 1>(timed, workspace).run();
    case 2:
      return Waves<W, 2>(timed, workspace).run();
    default:
      return Waves<W, 0>(timed, workspace).run();
  }
}

#ifdef __x86_64__
[[gnu::target("avx512f,avx512dq,avx512vl")]] void run_with_eight(TimedPasses& timed,
                                                                 ChainWorkspace& workspace) {
  run_with<8>(timed, workspace);
}
[[gnu::target("avx2")]] void run_with_four(TimedPasses& timed, ChainWorkspace& workspace) {
  run_with<4>(timed, workspace);
}
#endif

}  // namespace

Lanes widest_lanes() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    return Lanes::eight;
  }
  if (__builtin_cpu_supports("avx2") != 0) return Lanes::four;
#endif
  return Lanes::two;
}

void time_in_waves(TimedPasses& timed, Lanes lanes, ChainWorkspace& workspace) {
  assert(timed.chain.vp == 1 || timed.chain.pp > 2);
#ifdef __x86_64__
  if (lanes == Lanes::eight) return run_with_eight(timed, workspace);
  if (lanes == Lanes::four) return run_with_four(timed, workspace);
#endif
  (void)lanes;
  run_with<2>(timed, workspace);
}

}  // namespace braid
