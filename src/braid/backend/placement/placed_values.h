#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace braid {

/// A value in one of the formats 0, 1, …: how its numbers lie in memory. 0 is the one that inputs
/// and outputs of a program have.
struct FormatUse {
  std::int32_t value = 0;
  std::int8_t format = 0;
};

/// The formats that a value lies in, a bit each.
using FormatSet = std::uint8_t;
inline constexpr FormatSet only_plain = 1;

/// A value that candidates read and write in formats.
struct PlacedValue {
  std::int32_t producer = -1;         ///< A node; -1 for inputs, which are plain.
  std::vector<std::int32_t> readers;  ///< Nodes.
  bool is_output = false;
};

/// All values with formats, and what it takes to turn one into another.
struct PlacedValues {
  int formats = 1;  ///< At most 8.
  std::vector<PlacedValue> values;
  /// Seconds to write a value in another format; infinite where it cannot be. Not asked for equal
  /// formats. Must always say the same.
  std::function<double(std::int32_t value, int from, int to)> turn_s;
};

/// One way to write a value in more formats: one after the other, each from the cheapest that is
/// there.
struct Acquisition {
  FormatSet formats = only_plain;  ///< In the end.
  double cost_s = 0;
  std::vector<std::pair<std::int8_t, std::int8_t>> turns;  ///< From and to.
};

/// The cheapest way to have a value in exactly the formats `to`, which holds all of `from`. Cost:
/// the subsets of what is new, so few.
Acquisition cheapest_acquisition(const PlacedValues& values, std::int32_t value, FormatSet from,
                                 FormatSet to);

/// All ways to have a value in the formats `wanted` as well as `from`: these alone, and others with
/// them, which may be worth it where something else reads them later.
std::vector<Acquisition> acquisitions(const PlacedValues& values, std::int32_t value,
                                      FormatSet from, FormatSet wanted);

inline FormatSet format_bit(int format) {
  return static_cast<FormatSet>(1U << static_cast<unsigned>(format));
}

}  // namespace braid
