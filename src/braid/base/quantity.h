#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/base/document.h"

namespace braid {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Parses "80 GiB", "900GB/s", "100 Gb/s", "5 us", "989.4 TFLOP/s", "700 W", "30000 USD",
/// "1.05 GHz", "814 mm2", "0.59 pJ" into the base unit. GB is 1e9 bytes, GiB 2^30; Gb is gigabit.
/// Nullopt when the text is no number with a known unit of that kind, or is negative, NaN or
/// infinite.
std::optional<double> parse_quantity(std::string_view text, Unit unit);

/// What quantities of a machine may be, but for zero: less than anything that is built and more
/// than anything that is planned, so narrow that no product or quotient of a few of them leaves the
/// range of a double.
struct QuantityRange {
  double least, most;
  std::string_view text;  ///< "from 1 kFLOP/s to 1e24 FLOP/s"
};
QuantityRange plausible_range(Unit unit);

/// Why no machine has this quantity, and what to give instead, both for an Error; nullopt for zero
/// and what is in the range.
struct Implausible {
  std::string message;  ///< "no machine has such a compute rate"
  std::string remedy;   ///< "give one from 1 kFLOP/s to 1e24 FLOP/s"
};
std::optional<Implausible> implausible(double quantity, Unit unit);

/// A figure of a profile, in whatever unit: zero, or from 1e-60 to `most`, so that no rate computed
/// from it is infinite. Throws Error at `value`.
double profile_figure(const Value& value, double most);
/// More than any time, size or count of elements that somebody states; sums of many are numbers.
inline constexpr double kMostStated = 1e18;

/// What a quantity of this unit is: "a bandwidth".
std::string_view name_of_unit(Unit unit);

/// An example of how a quantity of this unit is written, for error messages: "80 GiB".
std::string_view quantity_example(Unit unit);

/// Binary size with three significant digits: "79.6 GiB". Exact integers below 1 KiB: "12 B".
std::string format_bytes(double bytes);
/// The same in the unit that `largest` is written in, with two decimals: sizes of one column of a
/// table, `largest` being the largest of them, "0.25 GiB" below "79.65 GiB".
std::string format_bytes_as(double bytes, double largest);
/// Decimal rate: "900 GB/s".
std::string format_bytes_per_s(double bytes_per_s);
/// "12.3 ms", "1.23 s", "45.6 us".
std::string format_seconds(double seconds);
/// Four significant digits, zeros at the end too: "2.730", "132.0", "1234".
std::string four_figures(double value);
/// Count with SI suffix: "70.6 B" (10^9), "8.03 B", "12.3 M".
std::string format_count(double count);

}  // namespace braid
