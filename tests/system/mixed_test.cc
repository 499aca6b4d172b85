#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/system/links.h"
#include "braid/system/system_json.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& spec) {
  try {
    load_system(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

System read_back(const System& system) {
  const Document document =
      Document::parse(to_text(to_json(system)), Document::Syntax::json, "system.json");
  return system_from_json(document.root());
}

class SystemFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "mine.yaml") {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  System load(const std::string& text) { return load_system(write(text)); }
  std::string refusal(const std::string& text) { return refusal_of(write(text)); }

  TemporaryFolder folder_;
};

const std::string kNvlink = "{name: NVLink, topology: switch, bandwidth: 20 GB/s}";
const std::string kNetwork =
    "levels: [{name: net, topology: switch, bandwidth: 1 GB/s, unit_bandwidth: 4 GB/s}]\n";

TEST(Joined, TheSlowerUplinkDecides) {
  const System system = load_system("p3.8xlarge:3nodes+g4dn.12xlarge:2nodes");
  ASSERT_EQ(system.groups.size(), 2U);
  EXPECT_EQ(system.device_count, 20);
  EXPECT_EQ(system.groups[0].chip.name, "v100-sxm-16gb");
  EXPECT_EQ(system.groups[1].chip.name, "t4");
  EXPECT_FALSE(is_homogeneous(system));
  EXPECT_EQ(link_bytes_per_s(system, 0, 3), 21.25e9);
  EXPECT_EQ(link_bytes_per_s(system, 0, 4), 1.25e9);
  EXPECT_EQ(link_bytes_per_s(system, 0, 12), 1.25e9);
  EXPECT_EQ(link_bytes_per_s(system, 12, 16), 6.25e9);
  EXPECT_EQ(system.levels[0].size, 5);
  EXPECT_DOUBLE_EQ(system.levels[0].latency_s, 25e-6);
  EXPECT_EQ(system.provenance.back().key, "levels");
  EXPECT_TRUE(system.provenance.back().assumed);
  EXPECT_EQ(read_back(system), system);
}

TEST(Joined, PartsOfOneKindAreOneGroup) {
  const System system = load_system("dgx-h100:2nodes+dgx-h100:3nodes");
  EXPECT_TRUE(is_homogeneous(system));
  EXPECT_EQ(system.groups[0].nodes, 5);
  EXPECT_EQ(system.device_count, 40);
}

TEST(Joined, OnlyTheLastPartMayBeRagged) {
  EXPECT_EQ(load_system("dgx-h100:8+dgx-a100:5").device_count, 13);
  EXPECT_THAT(refusal_of("dgx-h100:5+dgx-a100:8"), HasSubstr("partly filled"));
}

TEST(Joined, PartsWithoutANetworkAreRefused) {
  EXPECT_THAT(refusal_of("tpu-v4-pod:64+dgx-h100:8"), HasSubstr("tpu-v4-pod has 0 networks"));
  EXPECT_THAT(refusal_of("dgx-h100:8+"), HasSubstr("has a + with no cluster beside it"));
  EXPECT_THAT(refusal_of("+"), HasSubstr("has a + with no cluster beside it"));
  EXPECT_THAT(refusal_of("dgx-h100:8+dgx-h10:8"), HasSubstr("dgx-h100"));
  EXPECT_THAT(refusal_of("dgx-h100:1073741824+dgx-a100:1073741832"), HasSubstr("2^31"));
}

TEST_F(SystemFile, GroupsOfClustersInOneLineEach) {
  const System system = load(
      "name: mix\n"
      "groups:\n"
      "  - {cluster: p3.8xlarge, nodes: 3}\n"
      "  - {cluster: g4dn.12xlarge, nodes: 1}\n");
  System joined = load_system("p3.8xlarge:3nodes+g4dn.12xlarge:1nodes");
  EXPECT_EQ(system.name, "mix");
  joined.name = "mix";
  EXPECT_EQ(system, joined);
  EXPECT_EQ(read_back(system), system);
}

TEST_F(SystemFile, GroupsWithANetworkOfTheirOwn) {
  const System system = load(
      "name: mix\ndescription: two kinds\n"
      "groups:\n"
      "  - {chip: h100-sxm, nodes: 2, devices_per_node: 4, intra_node: " +
      kNvlink +
      "}\n"
      "  - {cluster: g4dn.12xlarge, nodes: 3}\n"
      "  - {chip: t4, devices_per_node: 1, intra_node: " +
      kNvlink + ", node_bandwidth: 2 GB/s, host: {size: 64 GB, bandwidth: 10 GB/s}}\n" + kNetwork);
  EXPECT_EQ(system.device_count, 8 + 12 + 1);
  EXPECT_EQ(system.levels[0].size, 6);
  EXPECT_EQ(link_bytes_per_s(system, 0, 4), 4e9);
  EXPECT_EQ(link_bytes_per_s(system, 8, 12), 4e9);  // The level's figure, below the node's.
  EXPECT_EQ(link_bytes_per_s(system, 0, 20), 2e9);
  EXPECT_EQ(system.groups[2].chip.host->bytes, 64e9);
  EXPECT_EQ(system.description, "two kinds");
  EXPECT_EQ(read_back(system), system);
  EXPECT_EQ(load_system(folder_ / "mine.yaml:21").device_count, 21);
  EXPECT_EQ(load_system(folder_ / "mine.yaml:6nodes").device_count, 21);
  EXPECT_THAT(refusal_of(folder_ / "mine.yaml:8"), HasSubstr("itself"));
}

TEST_F(SystemFile, HostMemoryIsSharedByTheNodesDevices) {
  const System system =
      load("name: mine\nchip: h100-sxm\ndevices_per_node: 4\nintra_node: " + kNvlink +
           "\nhost: {name: DDR5, size: 1 TB, bandwidth: 50 GB/s}\n");
  ASSERT_TRUE(system.groups[0].chip.host);
  EXPECT_EQ(system.groups[0].chip.host->bytes, 0.25e12);
  EXPECT_EQ(system.groups[0].chip.host->bytes_per_s, 50e9);
  EXPECT_EQ(system.groups[0].chip.host->name, "DDR5");
  EXPECT_FALSE(load_chip("h100-sxm").host);
  const double usual_s = load_chip("h100-sxm").efficiency.host_operator_s;
  EXPECT_EQ(system.groups[0].chip.efficiency.host_operator_s, usual_s);
}

TEST_F(SystemFile, HostsSayHowLongTheyTakeToIssueAnOperator) {
  const std::string start =
      "name: mine\nchip: h100-sxm\ndevices_per_node: 4\nintra_node: " + kNvlink +
      "\nhost: {size: 1 TB, bandwidth: 50 GB/s, operator: ";
  const System system = load(start + "186 us}\n");
  EXPECT_DOUBLE_EQ(system.groups[0].chip.efficiency.host_operator_s, 186e-6);
  EXPECT_EQ(read_back(system), system);
  EXPECT_THAT(refusal(start + "186 GB}\n"), HasSubstr("operator"));
}

TEST_F(SystemFile, ChipsMayStandInTheFileOrBesideIt) {
  const std::string chip =
      "{name: mine, peak: {bf16: 1 TFLOP/s}, vector: 1 TFLOP/s, compute_units: 1, "
      "memory: {name: HBM, size: 1 GB, bandwidth: 1 GB/s}}";
  const std::string rest = "\ndevices_per_node: 2\nintra_node: " + kNvlink + "\n";
  const System inside = load("name: a\nchip: " + chip + rest);
  write(chip, "chip.yaml");
  const System beside = load("name: a\nchip: chip.yaml" + rest);
  EXPECT_EQ(inside, beside);
  EXPECT_EQ(inside.groups[0].chip.name, "mine");
}

TEST_F(SystemFile, DataflowChipsNeedMemoryOnChip) {
  const auto file = [](const std::string& more) {
    return "name: a\nchip: {name: mine, peak: {bf16: 1 TFLOP/s}, vector: 1 TFLOP/s, "
           "compute_units: 1, memory: {name: HBM, size: 1 GB, bandwidth: 1 GB/s}" +
           more + "}\ndevices_per_node: 2\nintra_node: " + kNvlink + "\n";
  };
  const std::string on_chip = ", on_chip: {name: SRAM, size: 1 MB, bandwidth: 1 TB/s}";
  const auto execution = [&](const std::string& more) {
    return load(file(more)).groups[0].chip.execution;
  };
  EXPECT_EQ(execution(on_chip), ChipExecution::kernels);
  EXPECT_EQ(execution(on_chip + ", execution: kernels"), ChipExecution::kernels);
  EXPECT_EQ(execution(on_chip + ", execution: dataflow"), ChipExecution::dataflow);
  EXPECT_THAT(refusal(file(", execution: dataflow")), HasSubstr("on-chip"));
  EXPECT_THAT(refusal(file(on_chip + ", execution: fused")), HasSubstr("'fused'"));
  const auto kind = [&](const std::string& more) { return load(file(more)).groups[0].chip.kind; };
  EXPECT_EQ(kind(on_chip), ChipKind::gpu);
  EXPECT_EQ(kind(on_chip + ", execution: dataflow"), ChipKind::other);
  EXPECT_EQ(kind(on_chip + ", kind: tpu"), ChipKind::tpu);
  EXPECT_EQ(kind(on_chip + ", kind: gpu, execution: dataflow"), ChipKind::gpu);
  EXPECT_THAT(refusal(file(on_chip + ", kind: cpu")), HasSubstr("write gpu, tpu or other"));
}

TEST_F(SystemFile, BandwidthMatrix) {
  const System system = load(
      "name: three\nchip: t4\ndevices_per_node: 3\n"
      "bandwidth_matrix:\n"
      "  - [0 GB/s, 1 GB/s, 2 GB/s]\n"
      "  - [3 GB/s, 0 GB/s, 4 GB/s]\n"
      "  - [5 GB/s, 48 Gb/s, 0 GB/s]\n");
  EXPECT_EQ(system.bandwidth_matrix, (std::vector<double>{0, 1e9, 2e9, 3e9, 0, 4e9, 5e9, 6e9, 0}));
  EXPECT_FALSE(is_homogeneous(system));
  EXPECT_EQ(link_bytes_per_s(system, 2, 1), 6e9);
  EXPECT_EQ(read_back(system), system);
}

TEST_F(SystemFile, AMatrixOfMixedGroupsNeedsNoLevels) {
  const System system = load(
      "name: two\ngroups:\n"
      "  - {chip: t4, devices_per_node: 1}\n"
      "  - {chip: l4, devices_per_node: 1}\n"
      "bandwidth_matrix: [[~, 1 GB/s], [2 GB/s, ~]]\n");
  EXPECT_EQ(system.device_count, 2);
  EXPECT_EQ(link_bytes_per_s(system, 1, 0), 2e9);
  EXPECT_EQ(chip_at(system, 1).name, "l4");
  EXPECT_EQ(read_back(system), system);
}

TEST_F(SystemFile, BadMatricesAreRefused) {
  const std::string start = "name: two\nchip: t4\ndevices_per_node: 2\nbandwidth_matrix: ";
  const std::string good = "[[~, 1 GB/s], [1 GB/s, ~]]\n";
  EXPECT_EQ(refusal(start + good), "");
  for (const char* bad :
       {"[]", "[[~, 1 GB/s]]", "[[~, 1 GB/s], [1 GB/s]]", "[[~, 1 GB/s], [1 GB/s, ~], [~, ~]]",
        "[[~, 1 GB/s], [0 GB/s, ~]]", "[[~, 1 GB/s], [-1 GB/s, ~]]", "[[~, 1 GB/s], [1, ~]]",
        "[[~, 1 GB/s], [.nan GB/s, ~]]", "[[~, 1 GB/s], [.inf, ~]]",
        "[[~, 1 GB/s], [1e400 GB/s, ~]]", "[[~, 1 GB/s], [~, 1 GB/s]]", "[~, ~]", "12 GB/s",
        "{}"}) {
    const std::string message = refusal(start + bad + "\n");
    EXPECT_THAT(message, HasSubstr("mine.yaml:4")) << bad;
    EXPECT_TRUE(message.find("bandwidth_matrix") != std::string::npos ||
                message.find("not finite") != std::string::npos)
        << message;
  }
  write(start + good);
  EXPECT_NE(refusal_of(folder_ / "mine.yaml:3"), "");
}

TEST_F(SystemFile, BadGroupsAreRefused) {
  const std::string node = "{chip: t4, nodes: 2, devices_per_node: 4, intra_node: " + kNvlink + "}";
  const auto with = [&](const std::string& groups, const std::string& more = kNetwork) {
    return refusal("name: mix\ngroups: " + groups + "\n" + more);
  };
  EXPECT_EQ(with("[" + node + "]"), "");
  EXPECT_THAT(with("[]"), HasSubstr("at least one group"));
  EXPECT_THAT(with("{}"), HasSubstr("groups"));
  EXPECT_THAT(with("3"), HasSubstr("groups"));
  EXPECT_THAT(with("[" + node + "]", ""), HasSubstr("no network between nodes"));
  EXPECT_THAT(with("[" + node + "]", kNetwork + "chip: t4\n"), HasSubstr("each of the groups"));
  EXPECT_THAT(with("[{chip: t5, devices_per_node: 1, intra_node: " + kNvlink + "}]"),
              HasSubstr("no chip 't5'"));
  EXPECT_THAT(with("[{cluster: dgx-h10}]"), HasSubstr("dgx-h100"));
  EXPECT_THAT(with("[{cluster: dgx-h100, nodes: 0}]"), HasSubstr("nodes"));
  EXPECT_THAT(with("[{cluster: dgx-h100, chips: 3}]"), HasSubstr("chips"));
  EXPECT_THAT(with("[{cluster: dgx-h100}, " + node + "]", ""), HasSubstr("add levels"));
  EXPECT_THAT(with("[{chip: t4, nodes: 16777216, devices_per_node: 16777216, intra_node: " +
                   kNvlink + "}]"),
              HasSubstr("2^31"));
  EXPECT_THAT(with("[{chip: t4, nodes: 99999999999999999999, devices_per_node: 1, intra_node: " +
                   kNvlink + "}]"),
              HasSubstr("nodes"));
  std::string many = "[" + node;
  for (int i = 0; i < 200; ++i) {
    many +=
        ", {chip: t4, nodes: 16777216, devices_per_node: 16777216, intra_node: " + kNvlink + "}";
  }
  EXPECT_THAT(with(many + "]"), HasSubstr("2^31"));
}

TEST_F(SystemFile, AFileThatNamesItselfIsRefused) {
  const std::string message =
      refusal("name: loop\ngroups: [{cluster: mine.yaml, nodes: 1}, {cluster: mine.yaml}]\n");
  EXPECT_THAT(message, HasSubstr("does a file name itself?"));
}

TEST_F(SystemFile, LevelsNeedTheirSizesAndToriTheirShape) {
  const std::string start =
      "name: mine\nchip: t4\ndevices_per_node: 2\nnodes: 8\nintra_node: " + kNvlink + "\n";
  const auto levels = [](const std::string& inner, const std::string& outer) {
    return "levels:\n  - {name: in, topology: switch, bandwidth: 1 GB/s" + inner +
           "}\n  - {name: out, topology: switch, bandwidth: 1 GB/s" + outer + "}\n";
  };
  const System system = load(start + levels(", size: 4", ""));
  EXPECT_EQ(system.levels[0].size, 4);
  EXPECT_EQ(system.levels[1].size, 2);
  // A unit of the outer level is four nodes of two devices.
  EXPECT_EQ(system.levels[0].unit_bytes_per_s, 2e9);
  EXPECT_EQ(system.levels[1].unit_bytes_per_s, 8e9);
  EXPECT_THAT(refusal(start + levels("", "")), HasSubstr("needs its size"));
  EXPECT_THAT(refusal(start + levels(", size: 0", "")), HasSubstr("size"));
  const auto torus = [&](const std::string& dims) {
    return "name: mine\nchip: tpu-v4\ndevices_per_node: 64\n"
           "intra_node: {name: ICI, topology: torus, bandwidth: 300 GB/s" +
           dims + "}\n";
  };
  EXPECT_THAT(refusal(torus("")), HasSubstr("dims"));
  EXPECT_THAT(refusal(torus(", dims: [0, 64]")), HasSubstr("dims"));
  EXPECT_THAT(refusal(torus(", dims: [1, 1, 1, 1, 1, 8, 8]")), HasSubstr("dims"));
  EXPECT_EQ(load(torus(", dims: [4, 4, 4]")).groups[0].intra_node.torus_dims,
            (std::vector<std::int64_t>{4, 4, 4}));
  const std::string huge = ", dims: [16777216, 16777216, 16777216]";
  EXPECT_EQ(load(torus(huge)).groups[0].intra_node.torus_dims,
            (std::vector<std::int64_t>{4, 4, 4}));
}

TEST(Slices, OfAPodAreToriOfTheirSize) {
  const System slice = load_system("tpu-v4-pod:128");
  const NetworkLevel& ici = slice.groups[0].intra_node;
  EXPECT_EQ(ici.size, 128);
  EXPECT_EQ(ici.torus_dims, (std::vector<std::int64_t>{4, 4, 8}));
  EXPECT_TRUE(slice.provenance.back().assumed);
  EXPECT_EQ(load_system("tpu-v5p-pod").groups[0].intra_node.torus_dims,
            (std::vector<std::int64_t>{16, 20, 28}));
  EXPECT_EQ(load_system("tpu-v5e-pod:512").groups[0].nodes, 2);
  EXPECT_THAT(refusal_of("tpu-v4-pod:8192"), HasSubstr("no network between nodes"));
}

TEST(SystemJson, BadSystemsAreRefused) {
  const std::string good = to_text(to_json(load_system("dgx-h100:16")));
  const auto refusal = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    const auto at = text.find(from);
    if (at == std::string::npos) return "not found: " + from;
    text.replace(at, from.size(), to);
    try {
      system_from_json(Document::parse(text, Document::Syntax::json, "s.json").root());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("\"nodes\": 2", "\"nodes\": 3"), "");
  EXPECT_THAT(refusal("\"nodes\": 2", "\"nodes\": 1"), HasSubstr("more devices than"));
  EXPECT_THAT(refusal("\"device_count\": 16", "\"device_count\": 0"), HasSubstr("device_count"));
  EXPECT_THAT(refusal("\"bandwidth_matrix\": []", "\"bandwidth_matrix\": [1, 2, 3]"),
              HasSubstr("each pair"));
  EXPECT_THAT(refusal("\"rails\": 8", "\"rails\": 0"), HasSubstr("rails"));
  EXPECT_THAT(refusal("\"topology\": \"switch\"", "\"topology\": \"star\""), HasSubstr("topology"));
}

}  // namespace
}  // namespace braid
