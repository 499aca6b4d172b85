#include "braid/schedule/interleaved_pair.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid {
namespace {

class PairTimer {
 public:
  PairTimer(TimedPasses& timed, ChainWorkspace& workspace)
      : timed_(timed), c_(timed.chain), w_(workspace) {}

  /// The k-th pass of a stage in one direction belongs to turn k / 2. Forwards the first stage gets
  /// to a turn a round before the second one, backwards after it.
  void run() {
    const std::int64_t vp = c_.vp;
    const std::int64_t turns = c_.num_micro_batches / 2 * vp;
    w_.alike.find(c_.forward_s, c_.backward_s, c_.hop_s, 2, vp);
    w_.steady.restart();
    for (std::int64_t q = 0; q < turns + vp; ++q) {
      const std::int64_t chunk = q % vp;
      const std::int64_t before = chunk == 0 ? vp - 1 : chunk - 1;
      const std::int64_t back = vp - 1 - chunk;
      const std::int64_t back_after = back == 0 ? vp - 1 : back - 1;
      const bool goes_ahead = q < turns;
      const bool goes_back = q >= vp;
      if (goes_ahead) begin_forward(0, chunk, q == 0);
      if (q > 0 && q <= turns) begin_forward(1, before, false);
      hand_over(arrived_forward_);
      if (goes_back) {
        begin_backward(0, back);
        begin_backward(1, back);
      }
      hand_over(arrived_backward_);
      if (goes_ahead) {
        begin_forward(0, chunk, false);
        begin_forward(1, chunk, q == 0);
      }
      hand_over(arrived_forward_);
      if (goes_back) begin_backward(0, back);
      if (q + 1 >= vp && q + 1 < turns + vp) begin_backward(1, back_after);
      hand_over(arrived_backward_);
      q += leap(q, turns);
    }
    timed_.passes_end_s.assign(device_, device_ + 2);
  }

 private:
  /// One pass of a stage. The parameters' arrival can only delay its first one: later ones end
  /// after it.
  void begin_forward(std::size_t stage, std::int64_t chunk, bool first) {
    const std::size_t index = static_cast<std::size_t>(2 * chunk) + stage;
    const double arrived = stage == 0 && chunk == 0 ? 0 : arrived_forward_[stage];
    double end = later(device_[stage], arrived) + c_.forward_s[index];
    if (first) {
      timed_.first_forward_end_s[stage] = end;
      if (!timed_.ready_s.empty()) end = later(end, timed_.ready_s[stage]);
    }
    send(stage, end, index + 1 < c_.hop_s.size() ? c_.hop_s[index] : 0);
  }
  void begin_backward(std::size_t stage, std::int64_t chunk) {
    const std::size_t index = static_cast<std::size_t>(2 * chunk) + stage;
    const double arrived = stage == 1 && chunk == c_.vp - 1 ? 0 : arrived_backward_[stage];
    const double end = later(device_[stage], arrived) + c_.backward_s[index];
    send(stage, end, index > 0 ? c_.hop_s[index - 1] : 0);
  }
  void send(std::size_t stage, double end, double hop_s) {
    device_[stage] = end;
    link_[stage] = later(link_[stage], end) + hop_s;
    sent_[1 - stage] = link_[stage];
    has_sent_[1 - stage] = true;
  }
  /// What was sent in a round is used in the next one.
  void hand_over(double* arrived) {
    for (std::size_t s = 0; s < 2; ++s) {
      if (has_sent_[s]) arrived[s] = sent_[s];
      has_sent_[s] = false;
    }
  }

  /// Turns to leap over after turn q.
  std::int64_t leap(std::int64_t q, std::int64_t turns) {
    const std::int64_t vp = c_.vp;
    if ((q + 1) % vp == 0 && q > vp && q < turns) {
      return vp * w_.steady.leap(times_, (turns - 1 - q) / vp);
    }
    return w_.alike.leap(q % vp, [&](SteadyState& steady, std::int64_t following) {
      // Before the first backward passes nothing has arrived for them, nor does any more for
      // forward passes after the last.
      const std::span<double> times = times_;
      return steady.leap(q < vp ? times.first(6) : q > turns ? times.last(6) : times, following);
    });
  }

  TimedPasses& timed_;
  const ChainTimes& c_;
  ChainWorkspace& w_;
  std::array<double, 8> times_{};
  double* const arrived_forward_ = times_.data();
  double* const link_ = arrived_forward_ + 2;
  double* const device_ = link_ + 2;
  double* const arrived_backward_ = device_ + 2;
  std::array<double, 2> sent_{};
  std::array<bool, 2> has_sent_{};
};

}  // namespace

void time_interleaved_pair(TimedPasses& timed, ChainWorkspace& workspace) {
  assert(timed.chain.pp == 2 && timed.chain.vp > 1);
  timed.first_forward_end_s.assign(2, 0);
  PairTimer(timed, workspace).run();
}

}  // namespace braid
