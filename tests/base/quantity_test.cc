#include "braid/base/quantity.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include <gtest/gtest.h>

namespace braid {
namespace {

struct Case {
  const char* text;
  Unit unit;
  double value;
};

// Names the case in test reports.
void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.text; }

class ParseQuantity : public ::testing::TestWithParam<Case> {};

TEST_P(ParseQuantity, GivesBaseUnits) {
  const auto value = parse_quantity(GetParam().text, GetParam().unit);
  ASSERT_TRUE(value.has_value()) << GetParam().text;
  EXPECT_DOUBLE_EQ(*value, GetParam().value) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Units, ParseQuantity,
    ::testing::Values(
        Case{"80 GiB", Unit::bytes, 80 * 0x1p30}, Case{"80GiB", Unit::bytes, 80 * 0x1p30},
        Case{"80 GB", Unit::bytes, 80e9}, Case{"0 B", Unit::bytes, 0},
        Case{"512 KiB", Unit::bytes, 512 * 1024}, Case{"1.5 TB", Unit::bytes, 1.5e12},
        Case{"8 Gb", Unit::bytes, 1e9}, Case{"8 Gibit", Unit::bytes, 0x1p30},
        Case{"1e3 B", Unit::bytes, 1000}, Case{"5EB", Unit::bytes, 5e18},
        Case{" 2 MB ", Unit::bytes, 2e6}, Case{"50 MB", Unit::bytes, 50e6},
        Case{"900 GB/s", Unit::bytes_per_s, 900e9}, Case{"3.35 TB/s", Unit::bytes_per_s, 3.35e12},
        Case{"400 Gb/s", Unit::bytes_per_s, 50e9}, Case{"400 Gbit/s", Unit::bytes_per_s, 50e9},
        Case{"400 Gbps", Unit::bytes_per_s, 50e9}, Case{"1 GiB/s", Unit::bytes_per_s, 0x1p30},
        Case{"5 us", Unit::seconds, 5e-6}, Case{"5 \u00b5s", Unit::seconds, 5e-6},
        Case{"5 \u03bcs", Unit::seconds, 5e-6}, Case{"1.5 ms", Unit::seconds, 1.5e-3},
        Case{"700 ns", Unit::seconds, 700e-9}, Case{"2 min", Unit::seconds, 120},
        Case{"3 h", Unit::seconds, 10800}, Case{"4 s", Unit::seconds, 4},
        Case{"989.4 TFLOP/s", Unit::flops_per_s, 989.4e12},
        Case{"312 TFLOPS", Unit::flops_per_s, 312e12},
        Case{"1.979 PFLOP/s", Unit::flops_per_s, 1.979e15}, Case{"700 W", Unit::watts, 700},
        Case{"10.2 kW", Unit::watts, 10200}, Case{"1.2 MW", Unit::watts, 1.2e6},
        Case{"5 mW", Unit::watts, 5e-3}, Case{"30000 USD", Unit::usd, 30000},
        Case{"$30000", Unit::usd, 30000}, Case{"$ 1.5", Unit::usd, 1.5},
        Case{"30 kUSD", Unit::usd, 30000}, Case{"1.05 GHz", Unit::hertz, 1.05e9},
        Case{"940 MHz", Unit::hertz, 940e6}, Case{"814 mm2", Unit::metres2, 814e-6},
        Case{"462.25 cm2", Unit::metres2, 462.25e-4}, Case{"1 m2", Unit::metres2, 1},
        Case{"814 mm\u00b2", Unit::metres2, 814e-6}, Case{"0.59 pJ", Unit::joules, 0.59e-12},
        Case{"2 kJ", Unit::joules, 2e3}));

TEST(Quantity, TextThatIsNoQuantityOfTheUnitIsNone) {
  for (const char* text :
       {"",          " ",         "80",     "GiB",      "-1 GiB", "nan GiB", "inf GiB",
        "1e400 GiB", "1e308 GiB", "80 gib", "80 GiB/s", "80 Gi",  "80 G iB", "80 GiB x",
        "0x10 B",    "80,5 GiB",  "80 XB",  "+1 B",     "$5",     "1 GGB",   "1 kiB"}) {
    EXPECT_EQ(parse_quantity(text, Unit::bytes), std::nullopt) << text;
  }
  EXPECT_EQ(parse_quantity("80 GB", Unit::bytes_per_s), std::nullopt);
  EXPECT_EQ(parse_quantity("80 Gs", Unit::seconds), std::nullopt);
  EXPECT_EQ(parse_quantity("$5 USD", Unit::usd), std::nullopt);
  EXPECT_EQ(parse_quantity("5 kmm2", Unit::metres2), std::nullopt);
}

TEST(Quantity, ExamplesAreQuantities) {
  for (int i = 0; i <= static_cast<int>(Unit::joules); ++i) {
    const auto unit = static_cast<Unit>(i);
    EXPECT_TRUE(parse_quantity(quantity_example(unit), unit).has_value()) << quantity_example(unit);
  }
}

TEST(Quantity, WhatIsTooSmallForADoubleIsNotZero) {
  EXPECT_GT(parse_quantity("1e-320 us", Unit::seconds), 0.0);
  EXPECT_EQ(parse_quantity("0 us", Unit::seconds), 0.0);
}

TEST(Quantity, PlausibleRangesAreWhatTheirTextsSay) {
  for (int i = 0; i <= static_cast<int>(Unit::joules); ++i) {
    const auto unit = static_cast<Unit>(i);
    const QuantityRange range = plausible_range(unit);
    ASSERT_TRUE(range.text.starts_with("from ")) << range.text;
    const std::size_t to = range.text.find(" to ");
    const auto least = parse_quantity(range.text.substr(5, to - 5), unit);
    const auto most = parse_quantity(range.text.substr(to + 4), unit);
    ASSERT_TRUE(least && most) << range.text;
    EXPECT_DOUBLE_EQ(*least, range.least);
    EXPECT_DOUBLE_EQ(*most, range.most);
    const double example = *parse_quantity(quantity_example(unit), unit);
    for (const double quantity : {0.0, range.least, range.most, example}) {
      EXPECT_FALSE(implausible(quantity, unit)) << quantity;
    }
    for (const double quantity : {5e-324, 1e-300, range.least * 0.99, range.most * 1.01, 1e308}) {
      EXPECT_TRUE(implausible(quantity, unit)) << quantity;
    }
  }
}

TEST(Quantity, FormatBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(79.6 * 0x1p30), "79.6 GiB");
  EXPECT_EQ(format_bytes(1000 * 0x1p30), "1000 GiB");
  EXPECT_EQ(format_bytes(0x1p40 - 1), "1.00 TiB");
  EXPECT_EQ(format_bytes(9.999 * 0x1p20), "10.0 MiB");
  EXPECT_EQ(format_bytes(99.96 * 0x1p20), "100 MiB");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB");
  EXPECT_EQ(format_bytes_as(0.25 * 0x1p30, 79.6 * 0x1p30), "0.25 GiB");
  EXPECT_EQ(format_bytes_as(931 * 0x1p30, 1.36 * 0x1p40), "0.91 TiB");
  EXPECT_EQ(format_bytes_as(12, 12), "12.00 B");
  EXPECT_EQ(format_bytes(0x1p75), "32768 EiB");
}

TEST(Quantity, FormatRatesTimesAndCounts) {
  EXPECT_EQ(format_bytes_per_s(900e9), "900 GB/s");
  EXPECT_EQ(format_bytes_per_s(0), "0 B/s");
  EXPECT_EQ(format_bytes_per_s(3.35e12), "3.35 TB/s");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(1.23), "1.23 s");
  EXPECT_EQ(format_seconds(45.6e-6), "45.6 us");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(0.9994), "999 ms");
  EXPECT_EQ(format_seconds(12345), "12345 s");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_count(70.6e9), "70.6 B");
  EXPECT_EQ(format_count(8.03e9), "8.03 B");
  EXPECT_EQ(format_count(12.3e6), "12.3 M");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(999999), "1.00 M");
  EXPECT_EQ(format_count(1.5), "1.50");
  EXPECT_EQ(format_count(1.04e12), "1.04 T");
}

TEST(Quantity, FormattedTextReadsBackWithinHalfAPerCent) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-3, 17);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::pow(10.0, exponent(random));
    const auto bytes = parse_quantity(format_bytes(value * 1e3), Unit::bytes);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_NEAR(*bytes, value * 1e3, value * 1e3 * 0.00501);
    const auto rate = parse_quantity(format_bytes_per_s(value * 1e3), Unit::bytes_per_s);
    ASSERT_TRUE(rate.has_value());
    EXPECT_NEAR(*rate, value * 1e3, value * 1e3 * 0.00501);
    const auto time = parse_quantity(format_seconds(value * 1e-3), Unit::seconds);
    ASSERT_TRUE(time.has_value());
    EXPECT_NEAR(*time, value * 1e-3, value * 1e-3 * 0.00501);
  }
}

TEST(Quantity, FourFiguresKeepZeros) {
  EXPECT_EQ(four_figures(2.73), "2.730");
  EXPECT_EQ(four_figures(10), "10.00");
  EXPECT_EQ(four_figures(132.04), "132.0");
  EXPECT_EQ(four_figures(1234.4), "1234");
  EXPECT_EQ(four_figures(26116.1), "2.612e+04");
}

}  // namespace
}  // namespace braid
