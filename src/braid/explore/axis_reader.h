#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "braid/base/document.h"
#include "braid/explore/space_axis.h"

namespace braid {

// What readers of all kinds of spaces have in common.

/// Index of a word among names; throws Error at `value` with the nearest as the remedy.
std::size_t word_index(const Value& value, std::string_view what,
                       const std::vector<std::string_view>& names);

/// `key`, which names a value of an axis; throws Error at `value` unless it can be part of a file's
/// name.
std::string axis_name(std::string_view key, const Value& value);

/// A quantity that may be zero or missing.
double quantity_or_zero(const Value& value, Unit unit);

/// "24 USD per GB/s" in USD per GB/s, "0.05 W per GB/s" in W per GB/s; 0 when missing.
double read_rate_price(const Value& value, Unit unit);

/// A value, or one for each of up to this many networks or dimensions.
template <typename Read>
std::vector<double> read_each(const Value& value, std::size_t most, Read&& read) {
  if (!value.is_array()) return {read(value)};
  std::vector<double> values;
  for (const Value& entry : value.elements()) values.push_back(read(entry));
  if (values.empty() || values.size() > most) {
    value.fail(fmt::format("one value, or a list of one to {}", most));
  }
  return values;
}

/// The values of an axis, in file order: a map of names, or a list of names that stand for
/// themselves. `read` gets the name and its value (of a list the name once more).
template <typename Part, typename Read>
std::vector<Part> read_axis(const Value& root, std::string_view key, Read&& read) {
  const Value axis = root[key];
  if (!axis.exists()) {
    root.fail(fmt::format("the axis '{}' is missing", key), "give at least one value by name");
  }
  std::vector<Part> parts;
  if (axis.is_array()) {
    for (const Value& entry : axis.elements()) {
      std::string name = axis_name(entry.as_string(), entry);
      for (const Part& part : parts) {
        if (part.name == name) entry.fail("listed twice");
      }
      parts.push_back(read(std::move(name), entry));
    }
  } else if (!axis.is_null()) {
    for (const auto& [name, value] : axis.members()) {
      parts.push_back(read(axis_name(name, value), value));
    }
  }
  if (parts.empty()) {
    axis.fail(fmt::format("the axis '{}' has no values", key), "give at least one by name");
  }
  return parts;
}

/// Whether one value of an axis has a price, or a power.
struct PricedValue {
  Value value;
  std::string name;
  bool given = false;
};
struct PricedAxis {
  std::string what;     ///< "chip"
  std::string key;      ///< "port_price"
  bool needed = false;  ///< A system without it has no price at all; else none of the axis may.
  std::vector<PricedValue> values;
};

/// Whether systems are compared by `figure`, "price" or "power": as `compare` of the space says, by
/// default where any value has one. Then throws Error at the first value that lacks it, for an axis
/// of which others have it or that needs it: what is missing is not nothing.
bool is_compared_by(const Value& root, const std::string& figure, std::span<const PricedAxis> axes);

/// Throws Error when the product of the axes has more than kMostPoints points.
void check_point_count(const Value& root, const std::vector<SpaceAxis>& axes);

}  // namespace braid
