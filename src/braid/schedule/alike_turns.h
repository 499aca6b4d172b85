#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/base/index.h"
#include "braid/schedule/steady_state.h"

namespace braid {

/// An interleaved schedule goes in turns: in turn q the first stage runs pp forward passes of chunk
/// q mod vp, the last one pp backward passes of chunk vp - 1 - q mod vp, and the other stages those
/// or the ones of the turn before or after. Where the chunks of neighbouring turns are alike on
/// every stage, so are the turns, and a pipeline that has come to move by the same time with each
/// of them leaps over the rest.
class AlikeTurns {
 public:
  /// Cost: linear in the chunks. `forward_s`, `backward_s`, `hop_s`: as in ChainTimes.
  void find(std::span<const double> forward_s, std::span<const double> backward_s,
            std::span<const double> hop_s, std::int64_t pp, std::int64_t vp) {
    // Neither the first nor the last chunk: they begin and end the chain.
    const auto is_like_next = [&](std::int64_t chunk) {
      if (chunk < 1 || chunk + 1 > vp - 2) return false;
      const std::int64_t first = chunk * pp;
      const auto repeats = [&](std::span<const double> times, std::int64_t begin) {
        const auto row = times.begin() + begin;
        return std::equal(row, times.begin() + first + pp, row + pp);
      };
      // What comes in over the first stage's link has gone out over the last one's.
      return repeats(forward_s, first) && repeats(backward_s, first) && repeats(hop_s, first - 1);
    };
    run_ = -1;
    like_next_.resize(static_cast<std::size_t>(vp));
    last_.resize(static_cast<std::size_t>(vp));
    for (std::int64_t chunk = 0; chunk < vp; ++chunk)
      like_next_[at(chunk)] = is_like_next(chunk) ? 1 : 0;
    for (std::int64_t ahead = vp - 1; ahead >= 0; --ahead) {
      const std::int64_t back = vp - 1 - ahead;
      const bool goes_on = ahead >= 2 && back >= 2 &&
                           like_next_[at(ahead)] + like_next_[at(ahead - 1)] +
                                   like_next_[at(back - 1)] + like_next_[at(back - 2)] ==
                               4;
      last_[at(ahead)] = static_cast<std::int32_t>(goes_on ? last_[at(ahead + 1)] : ahead);
    }
  }

  /// Call after each turn, `ahead` being its chunk ahead. While alike turns follow, calls
  /// leap_over(steady, following), which is to return steady.leap of all times that those depend
  /// on. Returns by how many turns they were moved ahead.
  template <typename Leap>
  std::int64_t leap(std::int64_t ahead, const Leap& leap_over) {
    const std::int64_t last = last_[at(ahead)];
    if (last != run_) {
      run_ = last;
      tries_ = last - ahead >= kFewest;
      if (tries_) steady_.restart();
    }
    return tries_ && last > ahead ? leap_over(steady_, last - ahead) : 0;
  }

 private:
  /// Turns that follow on one before it is worth looking whether they repeat.
  static constexpr std::int64_t kFewest = 3;

  std::vector<std::uint8_t> like_next_;  ///< [chunk]
  /// [chunk]: the turns up to the one that has chunk last_ ahead are like the one with this chunk.
  std::vector<std::int32_t> last_;
  SteadyState steady_;
  std::int64_t run_ = -1;
  bool tries_ = false;
};

}  // namespace braid
