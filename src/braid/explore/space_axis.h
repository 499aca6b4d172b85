#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace braid {

/// Where pictures of a space put an axis.
enum class AxisPlace : std::uint8_t { page, row, column };

/// One of the axes that a space is a product of.
struct SpaceAxis {
  std::string name;  ///< "chip".
  AxisPlace place = AxisPlace::row;
  std::vector<std::string> values;  ///< Their names.
};

// The first two axes of every space.
inline constexpr std::size_t kWorkloadAxis = 0;
inline constexpr std::size_t kMethodAxis = 1;  ///< The ways to plan a point.

/// Which value of each axis.
using SpacePoint = std::vector<std::size_t>;

/// Names of parts that have one, in order: the values of an axis.
template <typename Part>
std::vector<std::string> names_of(const std::vector<Part>& parts) {
  std::vector<std::string> names;
  names.reserve(parts.size());
  for (const Part& part : parts) names.push_back(part.name);
  return names;
}

}  // namespace braid
