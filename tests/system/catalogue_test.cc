#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/system/system_json.h"

namespace braid {
namespace {

std::string refusal_of_cluster(const std::string& spec) {
  try {
    load_system(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Catalogue, EveryChipLoadsWithSourcesAndReadsBackEqual) {
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    EXPECT_EQ(chip.name, name);
    bool sourced = false;
    for (const Provenance& entry : chip.provenance) {
      sourced |= !entry.assumed && entry.key == "peak";
      EXPECT_FALSE(entry.source.empty()) << name << " " << entry.key;
    }
    EXPECT_TRUE(sourced) << name;
    const Document document =
        Document::parse(to_text(to_json(chip)), Document::Syntax::json, "chip.json");
    EXPECT_EQ(chip_from_json(document.root()), chip) << name;
  }
  EXPECT_FALSE(chip_names().empty());
}

TEST(Catalogue, EveryClusterLoadsAndReadsBackEqual) {
  for (const std::string& name : cluster_names()) {
    const System system = load_system(name + ":8");
    EXPECT_EQ(system.device_count, 8) << name;
    const Document document =
        Document::parse(to_text(to_json(system)), Document::Syntax::json, "system.json");
    EXPECT_EQ(system_from_json(document.root()), system) << name;
  }
  EXPECT_FALSE(cluster_names().empty());
}

TEST(Catalogue, PeaksAreNeverBorrowed) {
  EXPECT_TRUE(matmul_peak(load_chip("h100-sxm"), Dtype::f8));
  EXPECT_FALSE(matmul_peak(load_chip("a100-sxm-80gb"), Dtype::f8));
}

TEST(Cluster, CountsOfDevicesAndNodes) {
  EXPECT_EQ(load_system("dgx-h100").device_count, 8);
  EXPECT_EQ(load_system("dgx-h100:64").groups[0].nodes, 8);
  EXPECT_EQ(load_system("dgx-h100:8nodes").device_count, 64);
  EXPECT_EQ(load_system("dgx-h100:1").device_count, 1);
  const System ragged = load_system("dgx-h100:13");
  EXPECT_EQ(ragged.device_count, 13);
  EXPECT_EQ(ragged.groups[0].nodes, 2);
}

TEST(Cluster, BadCountsAndNamesAreRefused) {
  for (const char* spec :
       {"dgx-h100:0", "dgx-h100:-8", "dgx-h100:8.5", "dgx-h100:", "dgx-h100:x",
        "dgx-h100:1152921504606846976", "dgx-h100:8knots", "dgx-h100:2147483648nodes"}) {
    EXPECT_NE(refusal_of_cluster(spec), "") << spec;
  }
  EXPECT_NE(refusal_of_cluster("dgx-h10").find("dgx-h100"), std::string::npos);
  EXPECT_THROW(load_chip("h100"), Error);
}

class ClusterFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::string refusal_of(const std::string& text) {
    std::ofstream(path_) << text;
    return refusal_of_cluster(path_);
  }

  static std::string file(const std::string& intra_node, const std::string& more = "") {
    return "name: mine\nchip: h100-sxm\ndevices_per_node: 4\nintra_node: " + intra_node + "\n" +
           more;
  }

  std::string path_ = ::testing::TempDir() + "braid_cluster_" +
                      std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
};

TEST_F(ClusterFile, LoadsAndStatesWhatItAssumes) {
  EXPECT_EQ(refusal_of(file("{name: link, topology: switch, bandwidth: 100 GB/s}")), "");
  const System system = load_system(path_);
  EXPECT_EQ(system.device_count, 4);
  int assumed = 0;
  for (const Provenance& entry : system.provenance) assumed += entry.assumed ? 1 : 0;
  EXPECT_EQ(assumed, 2);  // Latency and efficiency.
}

TEST_F(ClusterFile, BadFiguresAreRefusedWithTheirLine) {
  const std::string good = "{name: link, topology: switch, bandwidth: 100 GB/s}";
  EXPECT_NE(refusal_of(file("{name: link, topology: switch, bandwidth: 100}")).find("unit"),
            std::string::npos);
  for (const char* bandwidth : {"0 GB/s", "-1 GB/s", ".nan GB/s", "1e400 GB/s", "100 GB"}) {
    const std::string refusal = refusal_of(
        file("{name: link, topology: switch, bandwidth: " + std::string(bandwidth) + "}"));
    EXPECT_NE(refusal.find(":4"), std::string::npos) << bandwidth << ": " << refusal;
    EXPECT_NE(refusal.find("bandwidth"), std::string::npos) << bandwidth << ": " << refusal;
  }
  EXPECT_NE(refusal_of(file("{name: link, topology: star, bandwidth: 1 GB/s}")).find("star"),
            std::string::npos);
  EXPECT_NE(refusal_of(file("{name: link, topology: switch}")).find("bandwidth"),
            std::string::npos);
  EXPECT_NE(refusal_of(file(good, "bandwith: 3\n")).find("bandwith"), std::string::npos);
  EXPECT_NE(refusal_of(file(good, "name: again\n")).find("name"), std::string::npos);
  EXPECT_NE(refusal_of(file(good, "nodes: 2\n")).find("network"), std::string::npos);
  EXPECT_NE(refusal_of("- a\n- b\n"), "");
}

}  // namespace
}  // namespace braid
