#include "braid/report/roofline.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <regex>
#include <set>
#include <string>
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

/// "2–4, 6" names 2, 3, 4 and 6.
std::set<int> named(const std::vector<Text>& texts) {
  std::set<int> all;
  for (const Text& each : texts) {
    const std::regex part("([0-9]+)(?:\u2013([0-9]+))?");
    for (std::sregex_iterator at(each.text.begin(), each.text.end(), part), end; at != end; ++at) {
      const int last = (*at)[2].matched ? std::stoi((*at)[2]) : std::stoi((*at)[1]);
      for (int n = std::stoi((*at)[1]); n <= last; ++n) all.insert(n);
    }
  }
  return all;
}

TEST(Roofline, NumbersLieOnNoOtherNumberAndNameAllPartitions) {
  for (const std::size_t partitions : {1, 3, 8, 20}) {
    for (const double spread : {1.0, 1.05, 1.5, 10.0, 1000.0}) {
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(fmt::format("{} {} {}", partitions, spread, seed));
        const std::vector<Text> texts =
            numbers_of(roofline_svg(drawn_plan(partitions, spread, seed)));
        ASSERT_FALSE(texts.empty());
        for (std::size_t i = 0; i < texts.size(); ++i) {
          EXPECT_GE(texts[i].x, 0);
          EXPECT_LE(texts[i].x + texts[i].width(), 760);
          for (std::size_t j = 0; j < i; ++j) {
            EXPECT_FALSE(texts[i].lies_on(texts[j])) << texts[i].text << " on " << texts[j].text;
          }
        }
        EXPECT_EQ(named(texts).size(), partitions);
        EXPECT_EQ(*named(texts).rbegin(), static_cast<int>(partitions));
      }
    }
  }
}

}  // namespace
}  // namespace braid
