#include "braid/base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace braid {
namespace {

struct Prefix {
  std::string_view text;
  double factor;
};

constexpr Prefix kPrefixes[] = {
    {"k", 1e3},     {"K", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30},
    {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}, {"", 1.0},
};

// A way to write a unit. Names that stand alone ("ms", "mm2") take no prefix.
struct Name {
  std::string_view text;
  double factor;
  bool takes_prefix;
};

constexpr Name kBytes[] = {
    {"B", 1, true},     {"byte", 1, true},    {"bytes", 1, true},
    {"b", 0.125, true}, {"bit", 0.125, true}, {"bits", 0.125, true},
};
constexpr Name kBytesPerS[] = {
    {"B/s", 1, true},     {"Bps", 1, true},     {"byte/s", 1, true},    {"bytes/s", 1, true},
    {"b/s", 0.125, true}, {"bps", 0.125, true}, {"bit/s", 0.125, true}, {"bits/s", 0.125, true},
};
constexpr Name kSeconds[] = {
    {"s", 1, false},     {"sec", 1, false},    {"second", 1, false},     {"seconds", 1, false},
    {"ms", 1e-3, false}, {"us", 1e-6, false},  {"\u00b5s", 1e-6, false}, {"\u03bcs", 1e-6, false},
    {"ns", 1e-9, false}, {"ps", 1e-12, false}, {"min", 60, false},       {"h", 3600, false},
    {"d", 86400, false},
};
constexpr Name kFlopsPerS[] = {
    {"FLOP/s", 1, true}, {"FLOPs/s", 1, true}, {"FLOPS", 1, true},
    {"FLOPs", 1, true},  {"Flop/s", 1, true},  {"flop/s", 1, true},
    {"flops", 1, true},  {"OP/s", 1, true},    {"OPS", 1, true},
};
constexpr Name kWatts[] = {{"W", 1, true}, {"mW", 1e-3, false}};
constexpr Name kUsd[] = {{"USD", 1, true}, {"$", 1, true}};
constexpr Name kHertz[] = {{"Hz", 1, true}};
constexpr Name kMetres2[] = {
    {"m2", 1, false},      {"m^2", 1, false},      {"m\u00b2", 1, false},
    {"cm2", 1e-4, false},  {"cm^2", 1e-4, false},  {"cm\u00b2", 1e-4, false},
    {"mm2", 1e-6, false},  {"mm^2", 1e-6, false},  {"mm\u00b2", 1e-6, false},
    {"um2", 1e-12, false}, {"um^2", 1e-12, false}, {"um\u00b2", 1e-12, false},
};

constexpr Name kJoules[] = {{"J", 1, true},      {"mJ", 1e-3, false},  {"uJ", 1e-6, false},
                            {"nJ", 1e-9, false}, {"pJ", 1e-12, false}, {"fJ", 1e-15, false}};

std::span<const Name> names_of(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return kBytes;
    case Unit::bytes_per_s:
      return kBytesPerS;
    case Unit::seconds:
      return kSeconds;
    case Unit::flops_per_s:
      return kFlopsPerS;
    case Unit::watts:
      return kWatts;
    case Unit::usd:
      return kUsd;
    case Unit::hertz:
      return kHertz;
    case Unit::metres2:
      return kMetres2;
    case Unit::joules:
      return kJoules;
  }
  return {};
}

std::optional<double> factor_of(std::string_view text, Unit unit) {
  for (const Name& name : names_of(unit)) {
    if (text == name.text) return name.factor;
    if (!name.takes_prefix || !text.ends_with(name.text)) continue;
    const std::string_view start = text.substr(0, text.size() - name.text.size());
    for (const Prefix& prefix : kPrefixes) {
      if (start == prefix.text) return prefix.factor * name.factor;
    }
  }
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

struct Scale {
  double factor;
  std::string_view suffix;
};

// Three significant digits; whole numbers from 100 on.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

// `scales` from small to large. Takes the largest in which the value is at least 1 after rounding,
// so that 999,600 is "1.00 M" and not "1000 K".
const Scale& scale_of(double value, std::span<const Scale> scales) {
  std::size_t at = 0;
  while (at + 1 < scales.size() &&
         std::abs(value) >= scales[at + 1].factor - 0.5 * scales[at].factor) {
    ++at;
  }
  return scales[at];
}

std::string scaled(double value, std::span<const Scale> scales) {
  if (!std::isfinite(value)) return fmt::format("{} {}", value, scales.front().suffix);
  const Scale& scale = scale_of(value, scales);
  return fmt::format("{} {}", three_digits(value / scale.factor), scale.suffix);
}

constexpr Scale kByteScales[] = {{1, "B"},        {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"},
                                 {0x1p40, "TiB"}, {0x1p50, "PiB"}, {0x1p60, "EiB"}};

std::string whole(double value) { return fmt::format("{:.0f}", value); }

}  // namespace

std::optional<double> parse_quantity(std::string_view text, Unit unit) {
  text = trim(text);
  std::string_view name;
  if (unit == Unit::usd && text.starts_with('$')) {
    name = "$";
    text = trim(text.substr(1));
  }
  // from_chars would also take "inf", "nan" and a minus sign.
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  const std::string_view rest =
      trim(text.substr(static_cast<std::size_t>(result.ptr - text.data())));
  if (name.empty()) {
    name = rest;
  } else if (!rest.empty()) {
    return std::nullopt;
  }
  const auto factor = factor_of(name, unit);
  if (!factor) return std::nullopt;
  double quantity = number * *factor;
  // What is too small for a double is not nothing.
  if (quantity == 0 && number > 0) quantity = std::numeric_limits<double>::denorm_min();
  return std::isfinite(quantity) ? std::optional(quantity) : std::nullopt;
}

std::string_view name_of_unit(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "a size";
    case Unit::bytes_per_s:
      return "a bandwidth";
    case Unit::seconds:
      return "a time";
    case Unit::flops_per_s:
      return "a compute rate";
    case Unit::watts:
      return "a power";
    case Unit::usd:
      return "a price";
    case Unit::hertz:
      return "a frequency";
    case Unit::metres2:
      return "an area";
    case Unit::joules:
      return "an energy";
  }
  return {};
}

QuantityRange plausible_range(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return {0.125, 1e18, "from 1 bit to 1 EB"};
    case Unit::bytes_per_s:
      return {1e-6, 1e21, "from 1e-6 B/s to 1000 EB/s"};
    case Unit::seconds:
      return {1e-15, 1e6, "from 0.001 ps to 1e6 s"};
    case Unit::flops_per_s:
      return {1e3, 1e24, "from 1 kFLOP/s to 1e24 FLOP/s"};
    case Unit::watts:
      return {1e-9, 1e9, "from 1e-9 W to 1 GW"};
    case Unit::usd:
      return {1e-9, 1e12, "from 1e-9 USD to 1e12 USD"};
    case Unit::hertz:
      return {1, 1e15, "from 1 Hz to 1e15 Hz"};
    case Unit::metres2:
      return {1e-18, 1e6, "from 1e-6 um2 to 1e6 m2"};
    case Unit::joules:
      return {1e-24, 1e9, "from 1e-12 pJ to 1 GJ"};
  }
  return {0, 0, ""};
}

std::optional<Implausible> implausible(double quantity, Unit unit) {
  const QuantityRange range = plausible_range(unit);
  if (quantity == 0 || (quantity >= range.least && quantity <= range.most)) return std::nullopt;
  std::string_view name = name_of_unit(unit);
  name.remove_prefix(name.find(' ') + 1);
  return Implausible{fmt::format("no machine has such a {}", name),
                     fmt::format("give one {}", range.text)};
}

double profile_figure(const Value& value, double most) {
  constexpr double kLeast = 1e-60;
  const double figure = value.as_double_in(0, most);
  if (figure > 0 && figure < kLeast) value.fail("is next to nothing", "give 0 or at least 1e-60");
  return figure;
}

std::string_view quantity_example(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "80 GiB";
    case Unit::bytes_per_s:
      return "900 GB/s";
    case Unit::seconds:
      return "5 us";
    case Unit::flops_per_s:
      return "989.4 TFLOP/s";
    case Unit::watts:
      return "700 W";
    case Unit::usd:
      return "30000 USD";
    case Unit::hertz:
      return "1.05 GHz";
    case Unit::metres2:
      return "814 mm2";
    case Unit::joules:
      return "0.59 pJ";
  }
  return {};
}

std::string format_bytes(double bytes) {
  if (std::abs(bytes) < 1024 && bytes == std::floor(bytes)) return whole(bytes) + " B";
  return scaled(bytes, kByteScales);
}

std::string format_bytes_as(double bytes, double largest) {
  const Scale& scale = scale_of(largest, kByteScales);
  return fmt::format("{:.2f} {}", bytes / scale.factor, scale.suffix);
}

std::string format_bytes_per_s(double bytes_per_s) {
  static constexpr Scale kScales[] = {{1, "B/s"},     {1e3, "kB/s"},  {1e6, "MB/s"}, {1e9, "GB/s"},
                                      {1e12, "TB/s"}, {1e15, "PB/s"}, {1e18, "EB/s"}};
  if (bytes_per_s == 0) return "0 B/s";
  return scaled(bytes_per_s, kScales);
}

std::string format_seconds(double seconds) {
  static constexpr Scale kScales[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
  if (seconds == 0) return "0 s";
  return scaled(seconds, kScales);
}

std::string format_count(double count) {
  static constexpr Scale kScales[] = {{1, ""}, {1e3, "K"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
  if (std::abs(count) < 1000 && count == std::floor(count)) return whole(count);
  std::string text = scaled(count, kScales);
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string four_figures(double value) {
  std::string plain = fmt::format("{:.4g}", value);
  const auto digits =
      std::count_if(plain.begin(), plain.end(), [](char c) { return c >= '0' && c <= '9'; });
  const bool is_whole = plain.find('.') == std::string::npos && digits >= 4;
  if (is_whole || plain.find('e') != std::string::npos) return plain;
  return fmt::format("{:#.4g}", value);
}

}  // namespace braid
