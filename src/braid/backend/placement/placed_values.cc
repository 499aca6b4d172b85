#include "braid/backend/placement/placed_values.h"

#include <cmath>
#include <limits>
#include <utility>

namespace braid {
namespace {

bool holds(FormatSet set, int format) { return (set & format_bit(format)) != 0; }

}  // namespace

Acquisition cheapest_acquisition(const PlacedValues& values, std::int32_t value, FormatSet from,
                                 FormatSet to) {
  Acquisition best{from, 0, {}};
  if (from == to) return best;
  best.cost_s = std::numeric_limits<double>::infinity();
  // By what is written last, from whatever is there by then.
  for (int last = 0; last < values.formats; ++last) {
    if (!holds(to, last) || holds(from, last)) continue;
    const auto before = static_cast<FormatSet>(to & ~format_bit(last));
    Acquisition way = cheapest_acquisition(values, value, from, before);
    double turn_s = std::numeric_limits<double>::infinity();
    int source = 0;
    for (int each = 0; each < values.formats; ++each) {
      if (!holds(before, each)) continue;
      const double each_s = values.turn_s(value, each, last);
      if (each_s < turn_s) {
        turn_s = each_s;
        source = each;
      }
    }
    if (way.cost_s + turn_s >= best.cost_s) continue;
    way.cost_s += turn_s;
    way.turns.emplace_back(static_cast<std::int8_t>(source), static_cast<std::int8_t>(last));
    best = std::move(way);
  }
  best.formats = to;
  return best;
}

std::vector<Acquisition> acquisitions(const PlacedValues& values, std::int32_t value,
                                      FormatSet from, FormatSet wanted) {
  const auto least = static_cast<FormatSet>(from | wanted);
  if (least == from) return {{from, 0, {}}};
  std::vector<Acquisition> ways;
  const auto all = (1U << static_cast<unsigned>(values.formats)) - 1;
  for (unsigned to = least; to <= all; ++to) {
    if ((to & least) != least) continue;
    Acquisition way = cheapest_acquisition(values, value, from, static_cast<FormatSet>(to));
    if (std::isfinite(way.cost_s)) ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace braid
