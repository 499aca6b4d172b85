#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/base/document.h"

namespace braid {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Parses "80 GiB", "900GB/s", "100 Gb/s", "5 us", "989.4 TFLOP/s", "700 W", "30000 USD",
/// "1.05 GHz", "814 mm2" into the base unit. GB is 1e9 bytes, GiB 2^30; Gb is gigabit. Returns
/// nullopt when the text is no number with a known unit of that kind, or is negative, NaN or
/// infinite.
std::optional<double> parse_quantity(std::string_view text, Unit unit);

/// An example of how a quantity of this unit is written, for error messages: "80 GiB".
std::string_view quantity_example(Unit unit);

/// Binary size with three significant digits: "79.6 GiB". Exact integers below 1 KiB: "12 B".
std::string format_bytes(double bytes);
/// Decimal rate: "900 GB/s".
std::string format_bytes_per_s(double bytes_per_s);
/// "12.3 ms", "1.23 s", "45.6 us".
std::string format_seconds(double seconds);
/// Count with SI suffix: "70.6 B" (10^9), "8.03 B", "12.3 M".
std::string format_count(double count);

}  // namespace braid
