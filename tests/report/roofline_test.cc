#include "braid/report/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

/// A mapping with a kernel in each partition. Intensities and times of partitions are drawn within
/// a factor of `spread`, so that marks are crowded where it is small.
DataflowPlan drawn_plan(std::size_t partitions, double spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&] {
    return std::pow(spread, static_cast<double>(random()) / static_cast<double>(random.max()));
  };
  DataflowPlan plan;
  plan.setup.chip = {640, 16, 8, 1.2e9, 3e8, 1.5e12, 1.5e11, 0, 0};
  for (std::size_t p = 0; p < partitions; ++p) {
    PartitionCost cost;
    cost.flops = 1e12;
    cost.time_s = 0.005 * draw();
    cost.dram_traffic_bytes = 1e8 * draw();
    cost.network_bytes = random() % 3 == 0 ? 0 : 1e7 * draw();
    cost.network_s = cost.network_bytes / 2e10;
    plan.outcome.cost.partitions.push_back(cost);
    plan.outcome.mapping.partition_of.push_back(static_cast<std::int32_t>(p));
    plan.work.kernels.push_back({fmt::format("kernel{}", p)});
  }
  return plan;
}

struct Text {
  double x = 0, y = 0;  ///< Left end of the base line, of 12 px.
  std::string text;
  double width() const {
    constexpr double kBoldDigit = 6.7;  // Of Arial and its like.
    double letters = 0;
    for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80 ? 1 : 0;
    return kBoldDigit * letters;
  }
  bool lies_on(const Text& other) const {
    return x < other.x + other.width() && other.x < x + width() && y - 9 < other.y &&
           other.y - 9 < y;
  }
};

/// Numbers of marks in the plot, which is 460 px high with what is below it.
std::vector<Text> numbers_of(const std::string& svg) {
  std::vector<Text> texts;
  const std::regex label("<text class=\"label\" x=\"([0-9.]+)\" y=\"([0-9.]+)\">([^<]*)</text>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at) {
    const Text text{std::stod((*at)[1]), std::stod((*at)[2]), (*at)[3]};
    if (text.y < 400) texts.push_back(text);
  }
  return texts;
}

/// "2 kernel1, 6 kernel5" names 2 and 6, and so does "2, 6".
std::set<int> named(const std::vector<Text>& texts) {
  std::set<int> all;
  for (const Text& each : texts) {
    const std::regex part("(?:^|, )([0-9]+)");
    for (std::sregex_iterator at(each.text.begin(), each.text.end(), part), end; at != end; ++at) {
      all.insert(std::stoi((*at)[1]));
    }
  }
  return all;
}

struct Dot {
  double x = 0, y = 0;
};

/// Discs and squares of the plot by their middles.
std::vector<Dot> dots_of(const std::string& svg) {
  std::vector<Dot> dots;
  const std::regex disc("<circle class=\"memory\" cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  const std::regex square("<rect class=\"network\" x=\"([0-9.]+)\" y=\"([0-9.]+)\"");
  for (const auto& [shape, half] : {std::pair(&disc, 0.0), std::pair(&square, 4.5)}) {
    for (std::sregex_iterator at(svg.begin(), svg.end(), *shape), end; at != end; ++at) {
      const Dot dot{std::stod((*at)[1]) + half, std::stod((*at)[2]) + half};
      if (dot.y < 380) dots.push_back(dot);  // Not those of the legend.
    }
  }
  return dots;
}

/// Places of dots that lie apart.
std::size_t spots_of(const std::vector<Dot>& dots) {
  std::vector<Dot> spots;
  for (const Dot& dot : dots) {
    const bool known = std::any_of(spots.begin(), spots.end(), [&dot](const Dot& other) {
      return std::abs(dot.x - other.x) < 1 && std::abs(dot.y - other.y) < 1;
    });
    if (!known) spots.push_back(dot);
  }
  return spots.size();
}

// Every mark has a label, which lies on no other and on no mark; those on one spot share it.
TEST(Roofline, LabelsLieOnNothingAndNameAllPartitions) {
  for (const std::size_t partitions : {1, 3, 8, 20}) {
    for (const double spread : {1.0, 1.05, 1.5, 10.0, 1000.0}) {
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(fmt::format("{} {} {}", partitions, spread, seed));
        const std::string svg = roofline_svg(drawn_plan(partitions, spread, seed));
        const std::vector<Text> texts = numbers_of(svg);
        const std::vector<Dot> dots = dots_of(svg);
        ASSERT_FALSE(texts.empty());
        for (std::size_t i = 0; i < texts.size(); ++i) {
          EXPECT_GE(texts[i].x, 0);
          EXPECT_LE(texts[i].x + texts[i].width(), 760);
          for (const Dot& dot : dots) {
            EXPECT_FALSE(texts[i].lies_on({dot.x - 4, dot.y + 4, "0"})) << texts[i].text;
          }
          for (std::size_t j = 0; j < i; ++j) {
            EXPECT_FALSE(texts[i].lies_on(texts[j])) << texts[i].text << " on " << texts[j].text;
          }
        }
        EXPECT_NEAR(static_cast<double>(texts.size()), static_cast<double>(spots_of(dots)), 2);
        EXPECT_EQ(named(texts).size(), partitions);
        EXPECT_EQ(*named(texts).rbegin(), static_cast<int>(partitions));
      }
    }
  }
}

// Close marks are told apart by lines to their labels, which have the first kernel of each.
TEST(Roofline, NamesKernelsOfCloseMarks) {
  const std::string svg = roofline_svg(drawn_plan(5, 1.5, 1));
  EXPECT_THAT(svg, ::testing::HasSubstr(">1 kernel0</text>"));
  EXPECT_THAT(svg, ::testing::HasSubstr("<line class=\"leader\""));
}

}  // namespace
}  // namespace braid
