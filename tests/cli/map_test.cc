#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "cli/program.h"
#include "dataflow/small_setup.h"

namespace braid {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_braid;
using ::testing::HasSubstr;

class Map : public ::testing::Test {
 protected:
  Map() { write_file(setup_, small_setup_text()); }

  json mapped(std::vector<std::string> more) const {
    std::vector<std::string> words = {"map", setup_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    json value = json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(value.is_object()) << ran.out;
    return value;
  }

  TemporaryFolder folder_;
  std::string setup_ = folder_ / "setup.txt";
};

TEST_F(Map, PrintsPartitionsAndWhatBoundsThem) {
  const Ran ran = run_braid({"map", setup_});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"bound by", "SRAM", "act down norm", "ring of 4 tensor", "optimal",
                           "32 samples through 12 layers", "USD"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
}

TEST_F(Map, JsonAddsUp) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--compat", "dfmodel"}, {"--style", "kernel-by-kernel"}}) {
    const json plan = mapped(more);
    double sum = 0;
    std::size_t kernels = 0;
    for (const json& partition : plan["partitions"]) {
      sum += partition["time_s"].get<double>();
      kernels += partition["kernels"].size();
      EXPECT_EQ(partition["time_s"].get<double>(),
                std::max({partition["compute_s"].get<double>(), partition["memory_s"].get<double>(),
                          partition["network_s"].get<double>()}));
      EXPECT_LE(partition["sram_bytes"].get<double>(), 8388608);
    }
    EXPECT_EQ(kernels, 4U);
    EXPECT_NEAR(plan["time_s"].get<double>(), sum, 1e-12 * sum);
    EXPECT_LE(plan["lower_bound_s"].get<double>(), plan["time_s"].get<double>());
    EXPECT_EQ(plan["job"]["tp"], 4);
  }
  EXPECT_LE(mapped({})["time_s"], mapped({"--style", "kernel-by-kernel"})["time_s"]);
  EXPECT_EQ(mapped({"--style", "kernel-by-kernel"})["partitions"].size(), 4U);
}

TEST_F(Map, SearchIsNeverSlowerThanWhatIsGiven) {
  const json given = mapped({}), roles = mapped({"--search", "roles"});
  const json shapes = mapped({"--search", "shapes"});
  EXPECT_LE(roles["job"]["time_s"], given["job"]["time_s"]);
  EXPECT_LE(shapes["job"]["time_s"], roles["job"]["time_s"]);
  EXPECT_EQ(
      roles["job"]["tp"].get<int>() * roles["job"]["pp"].get<int>() * roles["job"]["dp"].get<int>(),
      4);
}

TEST_F(Map, ShardingByEachDimensionIsNeverSlower) {
  write_file(setup_,
             replaced(replaced(small_setup_text(), "num_chip: 4", "num_chip: 8"),
                      "r { x: 4 link_bw_x: 50.0 par_x: \"TP\" }",
                      "r_r { x: 4 y: 2 link_bw_x: 50 link_bw_y: 2 par_x: 'TP' par_y: 'TP' }"));
  const json one = mapped({}), grid = mapped({"--sharding", "grid"});
  EXPECT_LE(grid["job"]["time_s"], one["job"]["time_s"]);
  EXPECT_FALSE(mapped({"--compat", "dfmodel"}).contains("sharding"));
  ASSERT_EQ(one["sharding"].size(), 4U);
  EXPECT_EQ(one["sharding"][2]["along"][0], one["sharding"][2]["along"][1]);
  ASSERT_EQ(grid["sharding"].size(), 4U);
  EXPECT_EQ(grid["sharding"][2]["kernel"], "down");
  EXPECT_EQ(grid["sharding"][2]["along"].size(), 2U);
  const Ran ran = run_braid({"map", setup_, "--sharding", "grid"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("harded along"));
}

// Two kernels on each of two stages, or the other way round where the chips are few.
TEST_F(Map, AWholeModelGoesToStages) {
  std::string text =
      replaced(small_setup_text(), "num_layer: 12", "num_layer_in_graph: 2 num_layer: 2");
  text = replaced(text, "r { x: 4 link_bw_x: 50.0 par_x: \"TP\" }",
                  "r_r { x: 2 y: 2 link_bw_x: 50 link_bw_y: 20 par_x: 'TP' par_y: 'PP' }");
  write_file(setup_, text);
  const json plan = mapped({});
  ASSERT_EQ(plan["stages"].size(), 2U);
  double slowest = 0;
  std::size_t partitions = 0;
  for (const json& stage : plan["stages"]) {
    slowest = std::max(slowest, stage["time_s"].get<double>());
    EXPECT_EQ(stage["first_partition"], partitions);
    partitions += stage["partitions"].get<std::size_t>();
  }
  EXPECT_EQ(partitions, plan["partitions"].size());
  EXPECT_EQ(plan["time_s"], slowest);
  EXPECT_EQ(plan["job"]["pp"], 2);
  const Ran ran = run_braid({"map", setup_});
  for (const char* part : {"messages on", "slowest of 2 stages", "through the whole model"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
  EXPECT_LE(mapped({"--search", "shapes"})["job"]["time_s"], plan["job"]["time_s"]);
  EXPECT_EQ(mapped({"--compat", "dfmodel", "--style", "kernel-by-kernel"})["partitions"].size(),
            4U);
}

// With the published charges kernels are sharded first and mapped then, unless asked otherwise.
TEST_F(Map, DividesAndMapsTogether) {
  const json first = mapped({"--compat", "dfmodel"});
  const json joint = mapped({"--compat", "dfmodel", "--sharding", "joint"});
  EXPECT_LE(joint["time_s"], first["time_s"]);
  EXPECT_EQ(first["search"]["boxes"], 0);
  EXPECT_GT(joint["search"]["boxes"], 0);
  EXPECT_EQ(joint["status"], "optimal");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"map", setup_},
        {"map", setup_, "--compat", "dfmodel", "--sharding", "joint"}}) {
    EXPECT_THAT(run_braid(words).out, HasSubstr("The sharding and the mapping are optimal"));
  }
  EXPECT_THAT(run_braid({"map", setup_, "--compat", "dfmodel"}).out,
              HasSubstr("The mapping is optimal"));
}

TEST_F(Map, WritesARoofline) {
  const std::string file = folder_ / "roofline.svg";
  const Ran ran = run_braid({"map", setup_, "--roofline", file});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string svg = read_file(file);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, HasSubstr("class=\"memory\""));
  EXPECT_THAT(svg, HasSubstr("class=\"network\""));
  // The kernels of each partition stand below, by the partition's number.
  const json mapping = json::parse(run_braid({"map", setup_, "--json"}).out);
  for (const json& partition : mapping["partitions"]) {
    for (const json& kernel : partition["kernels"]) {
      EXPECT_THAT(svg, HasSubstr(kernel.get<std::string>()));
    }
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// A chip with room for one product's parameters at a time.
TEST_F(Map, MapsALayerOfAModelOntoAChip) {
  const Ran ran = run_braid(
      {"map", "llama-3-8b", "--chip", "sn30", "--layer", "block0", "--seq-len", "2048", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json plan = json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(plan.is_object());
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_EQ(plan["job"]["chips"], 1);
  // The block's products: 2 x 218 M parameters x 2048 tokens, and attention's two.
  const double flops = plan["job"]["flops"].get<double>();
  const double products = 2.0 * 218103808 * 2048 + 2 * 2.0 * 32 * 128 * 2048 * 2048;
  EXPECT_GE(flops, products);
  EXPECT_LE(flops, 1.02 * products);
  EXPECT_GE(plan["time_s"].get<double>(), products / 614.4e12);
}

TEST_F(Map, MapsTrainingOfALayerOntoAChip) {
  const auto layer = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"map",    "gpt3-125m", "--chip", "sn30",  "--layer",
                                      "block0", "--seq-len", "256",    "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_braid(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
  };
  const json forward = layer({}), training = layer({"--training"}), step = layer({"--step"});
  const double flops = forward["job"]["flops"].get<double>();
  EXPECT_GT(training["job"]["flops"].get<double>(), 2.9 * flops);
  EXPECT_LT(training["job"]["flops"].get<double>(), 3.2 * flops);
  EXPECT_GT(training["time_s"].get<double>(), forward["time_s"].get<double>());
  EXPECT_GT(step["time_s"].get<double>(), training["time_s"].get<double>());
  EXPECT_THAT(step.dump(), HasSubstr("block0.mlp.up.step"));
  EXPECT_THAT(training.dump(), HasSubstr("block0.mlp.up.weight_gradient"));
}

}  // namespace
}  // namespace braid
