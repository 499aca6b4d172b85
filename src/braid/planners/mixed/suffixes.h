#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

/// The suffix of a pipeline from a stage on, as a search from its end keeps it.
struct MixedSuffix {
  double below_s = 0;  ///< One way down and up it, its first stage included.
  double first_s = 0;  ///< Of its first stage alone.
  double late_s = 0;   ///< No earlier does its first forward pass start, in effect,
  double rise_s = 0;   ///< nor does all end sooner after its last backward pass.
  double peak_s = 0;   ///< The longest OneFOneBTurns::turning_excess_s of any stage.
  std::int32_t right = 0;
  std::int32_t below_suffix = -1;  ///< What is behind that stage, by its number in the state there.
  std::int32_t next = -1;          ///< In the list.
  std::int16_t below = -1;         ///< Form of the stage behind.
  std::int16_t variant = 0;
};

/// Suffixes in lists, one for each cell (config and first layer of their first stages). None of a
/// list has all of the times above as long as another of it or longer. Not vectors of
/// base/pareto_front.h: there are as many cells as layers times configs in each of thousands of
/// states, most of them empty, and suffixes are pointed at by their numbers.
class MixedSuffixes {
 public:
  /// Makes empty lists; there are none before.
  void open(std::size_t cells) { heads_.assign(cells, -1); }
  bool is_open() const { return !heads_.empty(); }
  bool empty() const { return suffixes_.empty(); }

  /// Number of the first suffix of a cell's list, or -1; the others by MixedSuffix::next.
  std::int32_t head(std::size_t cell) const { return heads_[cell]; }
  const MixedSuffix& operator[](std::int32_t suffix) const {
    return suffixes_[static_cast<std::size_t>(suffix)];
  }

  /// Keeps the list free of what is worse in all; when it grows too long, two become one that is
  /// as good as the better in each.
  void insert(std::size_t cell, MixedSuffix suffix);

 private:
  std::vector<std::int32_t> heads_;
  std::vector<MixedSuffix> suffixes_;
};

}  // namespace braid
