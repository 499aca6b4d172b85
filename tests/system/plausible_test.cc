#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/system/system_json.h"
#include "braid/system/system_reader.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

// Every quantity that a cluster's file may have, one a line.
constexpr const char* kCluster = R"(name: c
groups:
  - nodes: 2
    devices_per_node: 4
    node_bandwidth: 100 GB/s
    chip:
      name: x
      peak:
        bf16: 100 TFLOP/s
      vector: 10 TFLOP/s
      compute_units: 8
      memory:
        name: HBM
        size: 80 GB
        bandwidth: 2 TB/s
      on_chip: {name: SRAM, size: 1 MB, bandwidth: 9 TB/s}
      reserved: 1 GB
      power: 700 W
      price: 30000 USD
      efficiency:
        memory_half_size: 2 MB
        kernel_launch: 3 us
        host_operator: 6 us
    host: {size: 512 GB, bandwidth: 50 GB/s, operator: 4 us}
    intra_node:
      name: inner
      topology: switch
      bandwidth: 300 GB/s
      unit_bandwidth: 400 GB/s
      half_size: 7 MB
      latency: 5 us
levels:
  - name: outer
    topology: switch
    bandwidth: 25 GB/s
    latency: 8 us
)";
constexpr std::pair<const char*, const char*> kQuantities[] = {{"100 GB/s", "node_bandwidth"},
                                                               {"100 TFLOP/s", "bf16"},
                                                               {"10 TFLOP/s", "vector"},
                                                               {"80 GB", "memory.size"},
                                                               {"2 TB/s", "memory.bandwidth"},
                                                               {"1 MB", "on_chip.size"},
                                                               {"9 TB/s", "on_chip.bandwidth"},
                                                               {"1 GB", "reserved"},
                                                               {"700 W", "power"},
                                                               {"30000 USD", "price"},
                                                               {"2 MB", "memory_half_size"},
                                                               {"3 us", "kernel_launch"},
                                                               {"6 us", "host_operator"},
                                                               {"512 GB", "host.size"},
                                                               {"50 GB/s", "host.bandwidth"},
                                                               {"4 us", "host.operator"},
                                                               {"300 GB/s", "bandwidth"},
                                                               {"400 GB/s", "unit_bandwidth"},
                                                               {"7 MB", "half_size"},
                                                               {"5 us", "latency"},
                                                               {"25 GB/s", "levels[0].bandwidth"},
                                                               {"8 us", "levels[0].latency"}};

System read_cluster(const std::string& text) {
  return read_system(Document::parse(text, Document::Syntax::yaml, "c.yaml").root(), {}, 0);
}

/// kCluster with `number` in place of the quantity's own.
std::string with_figure(const std::string& quantity, const std::string& number) {
  std::string text = kCluster;
  const std::size_t at = text.find(quantity);
  EXPECT_NE(at, std::string::npos) << quantity;
  return text.replace(at, quantity.find(' '), number);
}

std::string refusal(const std::string& text) {
  try {
    read_cluster(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Plausible, NoQuantityOfAClusterLeavesItsRange) {
  ASSERT_EQ(refusal(kCluster), "");
  for (const auto& [quantity, key] : kQuantities) {
    for (const char* number : {"4.9e-324", "1e-320", "1e-300", "1e-40", "1e40", "1e200", "1e290"}) {
      const std::string said = refusal(with_figure(quantity, number));
      EXPECT_THAT(said, HasSubstr(std::string(key) + ": no machine has such a")) << number;
      EXPECT_THAT(said, HasSubstr("c.yaml:")) << number;
      EXPECT_THAT(said, HasSubstr("; give one from ")) << number;
    }
    for (const char* number : {"-1", "nan", "inf", ".inf", "1e308", "1e400", "1e-400"}) {
      EXPECT_THAT(refusal(with_figure(quantity, number)), HasSubstr(key)) << quantity << number;
    }
  }
}

// What can be read can be a part of a plan, however small or large its figures.
TEST(Plausible, WhatIsReadIsReadBackFromJson) {
  for (const auto& [quantity, key] : kQuantities) {
    for (const char* number : {"1", "1e-15", "1e-9", "1e-3", "1e3", "1e6", "1e9", "1e12", "1e15"}) {
      const std::string text = with_figure(quantity, number);
      if (!refusal(text).empty()) continue;
      const std::string json = to_text(to_json(read_cluster(text)));
      const Document again = Document::parse(json, Document::Syntax::json, "again");
      EXPECT_EQ(to_text(to_json(system_from_json(again.root()))), json) << key << number;
    }
  }
}

TEST(Plausible, PlansHoldNoOtherFigures) {
  const std::string json = to_text(to_json(read_cluster(kCluster)));
  for (const std::string key : {"bf16", "vector_flops_per_s", "bytes", "bytes_per_s",
                                "unit_bytes_per_s", "node_bytes_per_s"}) {
    for (const char* number : {"1e-320", "1e-100", "1e300", "0", "-1"}) {
      std::string text = json;
      const std::size_t at = text.find("\"" + key + "\": ");
      ASSERT_NE(at, std::string::npos) << key << json;
      const std::size_t from = at + key.size() + 4;
      text.replace(from, text.find_first_of(",\n", from) - from, number);
      const Document document = Document::parse(text, Document::Syntax::json, "plan.json");
      try {
        system_from_json(document.root());
        ADD_FAILURE() << key << " as " << number;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(key));
      }
    }
  }
}

}  // namespace
}  // namespace braid
