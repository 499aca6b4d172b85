// The sweep of DFModel's section VI-C1: GPT3-1T on 1024 of four chips in five networks with two
// memories and two kinds of links. Chips, prices and powers are those of the published inputs.
#include <cmath>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/dataflow/dataflow_plan.h"

#include "base/reference_files.h"
#include "dataflow/reference_setup.h"

namespace braid {
namespace {

struct ChipKind {
  const char* name;
  DataflowChip chip;
  double usd, watts;
  bool dataflow;
};

constexpr double kMiB = 1024.0 * 1024;
const ChipKind kChips[] = {
    {"h100", {1056, 16, 16, 1.837e9, 118489090, 0, 0, 0, 0}, 33000, 750, false},
    {"tpu", {8, 128, 128, 1.05e9, 160 * kMiB, 0, 0, 0, 0}, 4474.82, 170.63, false},
    {"sn30", {1280, 32, 6, 1.25e9, 640 * kMiB, 0, 0, 0, 0}, 16522.25, 444.71, true},
    {"wse", {853776, 4, 1, 1.1e9, 41.96e9, 0, 0, 0, 0}, 3025964, 20298, true}};

constexpr FabricShape kRing = FabricShape::ring, kMesh = FabricShape::fully_connected,
                      kSwitch = FabricShape::switched;
const std::map<std::string, std::pair<FabricShape, FabricShape>> kNetworks = {
    {"2d_torus", {kRing, kRing}},
    {"3d_torus", {kRing, kRing}},
    {"dragonfly", {kMesh, kMesh}},
    {"dgx_1", {kRing, kSwitch}},
    {"dgx_2", {kSwitch, kSwitch}}};

struct Point {
  std::string chip, network;
  bool hbm = false, nvlink = false;
  double time_s = 0, utilisation = 0, usd = 0, watts = 0;
};

Point point_of(DataflowSetup setup, const ChipKind& kind, const std::string& network, bool hbm,
               bool nvlink) {
  setup.chip = kind.chip;
  setup.chip.dram_bytes_per_s = hbm ? 3072e9 : 300e9;
  setup.chip.dram_bytes = hbm ? 96 * 1024 * kMiB : 1.1e12;
  setup.prices.dram_w = hbm ? .05624 : .16248;
  setup.prices.chip_usd = kind.usd;
  setup.prices.chip_w = kind.watts;
  setup.prices.link_w[0] = nvlink ? .0104 : .052;
  setup.prices.link_w[1] = setup.prices.link_w[2] = .052;
  const auto [inner, outer] = kNetworks.at(network);
  const bool cube = network == "3d_torus";
  setup.fabric.dimensions = {{inner, 8, nvlink ? 450e9 : 50e9, FabricRole::tensor},
                             {outer, cube ? 64 : 128, 50e9, FabricRole::pipeline}};
  if (cube) setup.fabric.dimensions.push_back({outer, 2, 50e9, FabricRole::data});
  setup.rules.overlap = PartitionOverlap::all;
  setup.kernel_by_kernel = !kind.dataflow;
  setup.rules.separate_passes = std::string(kind.name) != "wse";  // Its inputs have one partition.
  setup.job.tile = kind.dataflow ? 1 : 2048;
  const DataflowPlan plan = plan_dataflow(setup, published_plan_rules(setup));
  EXPECT_FALSE(plan.outcome.mapping.partition_of.empty()) << kind.name << " " << network;
  const MachineCost cost = machine_cost(setup);
  return {kind.name, network,   hbm, nvlink, plan.time.time_s, plan.time.utilisation,
          cost.usd,  cost.watts};
}

class PublishedSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto setup = reference_setup("gpt3_1t_h100_2dtorus_hbm_nvlink");
    if (!setup) GTEST_SKIP() << "reference data not present";
    for (const ChipKind& kind : kChips) {
      for (const auto& [network, shapes] : kNetworks) {
        for (const bool hbm : {false, true}) {
          for (const bool nvlink : {false, true}) {
            points_.push_back(point_of(*setup, kind, network, hbm, nvlink));
          }
        }
      }
    }
  }

  using Choice = std::function<bool(const Point&)>;
  using Figure = std::function<double(const Point&)>;

  double mean(const Choice& choice, const Figure& figure) const {
    double sum = 0;
    int count = 0;
    for (const Point& point : points_) {
      if (!choice(point)) continue;
      sum += std::log(figure(point));
      ++count;
    }
    EXPECT_GT(count, 0);
    return std::exp(sum / count);
  }

  double ratio(const Choice& above, const Choice& below, const Figure& figure) const {
    return mean(above, figure) / mean(below, figure);
  }

  std::vector<Point> points_;
};

double utilisation(const Point& point) { return point.utilisation; }
// Chips of one system are alike, so work per second and dollar is utilisation times peak per cost.
double per_dollar(const Point& point) { return 1 / (point.time_s * point.usd); }
double per_watt(const Point& point) { return 1 / (point.time_s * point.watts); }
bool is_rdu(const Point& point) { return point.chip == "sn30"; }
bool is_wafer(const Point& point) { return point.chip == "wse"; }
bool is_plain(const Point& point) { return point.chip == "h100" || point.chip == "tpu"; }
bool is_simple(const Point& point) { return point.network != "dragonfly"; }

// Geometric means over the sweep against the paper's figures, which have two digits.
TEST_F(PublishedSweep, RatiosOfThePaper) {
  EXPECT_NEAR(ratio(is_rdu, is_plain, utilisation), 1.52, 0.005);
  const auto with = [](const Choice& choice, bool Point::*part, bool value) {
    return [=](const Point& point) { return choice(point) && point.*part == value; };
  };
  EXPECT_NEAR(
      ratio(with(is_plain, &Point::hbm, true), with(is_plain, &Point::hbm, false), utilisation),
      1.66, 0.005);
  EXPECT_NEAR(ratio(with(is_rdu, &Point::hbm, true), with(is_rdu, &Point::hbm, false), utilisation),
              1.0, 0.001);
  EXPECT_NEAR(ratio(with(is_wafer, &Point::nvlink, true), with(is_wafer, &Point::nvlink, false),
                    utilisation),
              5.15, 0.01);
  const auto links = [](bool nvlink, bool simple) {
    return [=](const Point& point) {
      return !is_wafer(point) && point.nvlink == nvlink && is_simple(point) == simple;
    };
  };
  EXPECT_NEAR(ratio(links(false, false), links(false, true), utilisation), 1.21, 0.01);
  EXPECT_NEAR(ratio(links(true, false), links(true, true), utilisation), 1.0, 0.005);
  EXPECT_NEAR(ratio(is_rdu, is_plain, per_dollar), 1.59, 0.01);
  EXPECT_NEAR(ratio(is_rdu, is_plain, per_watt), 1.6, 0.01);
  const auto is_other = [](const Point& point) { return !is_wafer(point); };
  EXPECT_NEAR(ratio(is_wafer, is_other, per_dollar), 0.06, 0.005);
  EXPECT_NEAR(ratio(is_wafer, is_other, per_watt), 0.2, 0.005);
  // Of both kinds of links together.
  const auto is_dragonfly = [](const Point& point) {
    return !is_wafer(point) && !is_simple(point);
  };
  const auto is_torus_or_switch = [](const Point& point) {
    return !is_wafer(point) && is_simple(point);
  };
  EXPECT_NEAR(ratio(is_dragonfly, is_torus_or_switch, per_dollar), 0.51, 0.005);
  EXPECT_NEAR(ratio(is_dragonfly, is_torus_or_switch, per_watt), 0.91, 0.005);
}

// Times computed before by another program from the same equations.
TEST_F(PublishedSweep, TimesOfAnotherProgram) {
  const std::string path = reference_file("reference/dfmodel/llm_heatmap_recomputed.json");
  if (path.empty()) GTEST_SKIP() << "reference data not present";
  const Document document = Document::parse_file(path);
  for (const Point& point : points_) {
    // Its mappings of dataflow chips in the 3-D torus are those of the 2-D torus.
    if (point.network == "3d_torus" && (is_rdu(point) || is_wafer(point))) continue;
    const std::string key = "True|" + point.chip + "|" + point.network + "|" +
                            (point.hbm ? "hbm" : "ddr") + "|" + (point.nvlink ? "nvlink" : "pcie");
    const double time_s = document.root()[key][0].as_double();
    EXPECT_NEAR(point.time_s, time_s, 1e-4 * time_s) << key;
  }
}

}  // namespace
}  // namespace braid
