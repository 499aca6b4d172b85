#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace braid {

/// Figures of W neighbouring stages.
template <int W>
struct Vectors {
  typedef double Times __attribute__((vector_size(8 * W)));
};

/// Added to a time, makes it none: no pass waits for what has such a time. Finite, so that times
/// beyond all numbers stay infinite.
inline constexpr double kNothing = std::numeric_limits<double>::lowest();

/// What is done to W stages at once. Everything is inlined, into functions that are compiled for
/// processors with vectors of that length; on others it takes several instructions.
template <int W>
struct WaveVectors {
  using Times = typename Vectors<W>::Times;

  /// Figures of some stages, padded with stages that do nothing.
  struct Row {
    const double* pass_s;
    const double* hop_s;
  };
  /// What the stages of a range do, and what all others do.
  struct Rows {
    Row inside;
    Row outside;
  };

  [[gnu::always_inline]] static inline void fill(Times& to, double time_s) {
    to = Times{} + time_s;
  }
  [[gnu::always_inline]] static inline void load(Times& to, const double* from) {
    std::memcpy(&to, from, sizeof to);
  }
  [[gnu::always_inline]] static inline void later(Times& time, const Times& other) {
    time = time > other ? time : other;
  }
  /// Stage numbers of a block.
  [[gnu::always_inline]] static inline void number(Times& to, std::int64_t first) {
    for (int lane = 0; lane < W; ++lane) to[lane] = lane;
    to += static_cast<double>(first);
  }

  /// Stages from `first` to `last`, which is no less: those whose distance from the middle,
  /// squared, is at most half the range's. Compilers keep such a comparison in vectors.
  struct Active {
    double middle, most;

    [[gnu::always_inline]] inline Active(std::int64_t first, std::int64_t last)
        : middle(static_cast<double>(first + last) / 2),
          most(static_cast<double>(last - first) / 2) {
      most *= most;
    }
    /// Of stages, what is to be compared with `most`.
    [[gnu::always_inline]] inline void measure(Times& stages) const {
      stages -= middle;
      stages *= stages;
    }
  };

  template <std::size_t... I>
  [[gnu::always_inline]] static inline void shift_up(Times& to, const Times& before,
                                                     const Times& block,
                                                     std::index_sequence<I...> /*lanes*/) {
    to = __builtin_shufflevector(before, block, (W - 1 + I)...);
  }
  template <std::size_t... I>
  [[gnu::always_inline]] static inline void shift_down(Times& to, const Times& block,
                                                       const Times& after,
                                                       std::index_sequence<I...> /*lanes*/) {
    to = __builtin_shufflevector(block, after, (1 + I)...);
  }
  static constexpr std::make_index_sequence<W> kLanes{};

  /// One pass of each stage of a block.
  [[gnu::always_inline]] static inline void pass(Times& device, Times& link, const Times& arrived,
                                                 const Times& pass_s, const Times& hop_s) {
    later(device, arrived);
    device += pass_s;
    later(link, device);
    link += hop_s;
  }

  /// What a block's stages do: they are inside the range where `distance` is at most `most`.
  [[gnu::always_inline]] static inline void choose(Times& pass_s, Times& hop_s,
                                                   const Times& distance, double most,
                                                   const Rows& rows, std::int64_t first) {
    Times other_pass_s;
    Times other_hop_s;
    load(pass_s, rows.inside.pass_s + first);
    load(hop_s, rows.inside.hop_s + first);
    load(other_pass_s, rows.outside.pass_s + first);
    load(other_hop_s, rows.outside.hop_s + first);
    pass_s = distance <= most ? pass_s : other_pass_s;
    hop_s = distance <= most ? hop_s : other_hop_s;
  }
};

}  // namespace braid
