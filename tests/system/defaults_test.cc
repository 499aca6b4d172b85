#include "braid/system/defaults.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// Whether a value is in the middle half of these.
void expect_usual(double value, std::vector<double> of_catalogue) {
  std::sort(of_catalogue.begin(), of_catalogue.end());
  const std::size_t quarter = of_catalogue.size() / 4;
  EXPECT_GE(value, of_catalogue[quarter] * (1 - 1e-9));
  EXPECT_LE(value, of_catalogue[of_catalogue.size() - 1 - quarter] * (1 + 1e-9));
}

/// Chips whose kernels a host issues one by one.
bool is_gpu(const Chip& chip) {
  return chip.execution == ChipExecution::kernels && chip.efficiency.host_operator_s > 0;
}

TEST(Defaults, OfChipsAreUsualOfTheCataloguesGpus) {
  std::vector<Chip> gpus;
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    if (is_gpu(chip)) gpus.push_back(chip);
  }
  EXPECT_GT(gpus.size(), 10U);
  const Efficiency e = default_efficiency(ChipExecution::kernels);
  const auto expect = [&](double value, const std::function<double(const Chip&)>& figure) {
    std::vector<double> values;
    for (const Chip& chip : gpus) values.push_back(figure(chip));
    expect_usual(value, values);
  };
  expect(e.matmul_peak_fraction, [](const Chip& c) { return c.efficiency.matmul_peak_fraction; });
  expect(e.vector_peak_fraction, [](const Chip& c) { return c.efficiency.vector_peak_fraction; });
  expect(e.attention_peak_fraction,
         [](const Chip& c) { return c.efficiency.attention_peak_fraction; });
  expect(e.memory_peak_fraction, [](const Chip& c) { return c.efficiency.memory_peak_fraction; });
  expect(e.memory_half_bytes, [](const Chip& c) { return c.efficiency.memory_half_bytes; });
  expect(e.kernel_launch_s, [](const Chip& c) { return c.efficiency.kernel_launch_s; });
  expect(e.overlap_loss, [](const Chip& c) { return c.efficiency.overlap_loss; });
  expect(kReservedShare, [](const Chip& c) { return c.reserved_bytes / c.memory.bytes; });
  expect(e.host_operator_s, [](const Chip& c) { return c.efficiency.host_operator_s; });
}

TEST(Defaults, OfLinksAreUsualOfTheCatalogues) {
  std::vector<NetworkLevel> inside, between, tori;
  for (const std::string& name : cluster_names()) {
    const System system = load_system(name);
    if (system.groups.front().chip.accelerator) continue;  // A design: there is no such cluster.
    const NetworkLevel& level = system.groups.front().intra_node;
    (level.topology == Topology::torus ? tori : inside).push_back(level);
    // A cluster of one node has as many networks as its file, one of one unit.
    between.insert(between.end(), system.levels.begin(), system.levels.end());
  }
  const auto expect = [](const LinkDefaults& link, const std::vector<NetworkLevel>& levels) {
    std::vector<double> latency_s, efficiency, half_bytes;
    for (const NetworkLevel& level : levels) {
      latency_s.push_back(level.latency_s);
      efficiency.push_back(level.efficiency);
      half_bytes.push_back(level.half_bytes);
    }
    expect_usual(link.latency_s, latency_s);
    expect_usual(link.efficiency, efficiency);
    expect_usual(link.half_bytes, half_bytes);
  };
  expect(kLinkInNode, inside);
  expect(kLinkBetweenNodes, between);
  expect(kLinkOfTorus, tori);
}

std::string topology_key(const NetworkLevel& level) {
  switch (level.topology) {
    case Topology::ring:
      return "ring";
    case Topology::fully_connected:
      return "fully-connected";
    case Topology::torus: {
      std::string dims;
      for (const std::int64_t dim : level.torus_dims) {
        dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
      }
      return "torus, dims: [" + dims + "]";
    }
    default:
      return "switch";
  }
}

/// What a cluster's file has to say, and no more.
std::string least_file(const System& system) {
  const DeviceGroup& group = system.groups.front();
  const auto level_text = [](const NetworkLevel& level) {
    return fmt::format(
        "{{name: ours, topology: {}, bandwidth: {} B/s, unit_bandwidth: {} B/s, rails: {}}}",
        topology_key(level), level.bytes_per_s, level.unit_bytes_per_s, level.rails);
  };
  std::string text =
      fmt::format("name: ours\nchip: {}\ndevices_per_node: {}\nintra_node: {}\n", group.chip.name,
                  group.devices_per_node, level_text(group.intra_node));
  if (!system.levels.empty()) text += "levels:\n";
  for (const NetworkLevel& level : system.levels) text += "  - " + level_text(level) + "\n";
  return text;
}

std::string reference_chip(const System& system) { return system.groups.front().chip.name; }

// A cluster of one's own is what the catalogue's with the same chip is, whatever its file leaves
// out, and says so.
TEST(Defaults, OfAClusterOfOnesOwnAreThoseOfTheCatalogues) {
  const TemporaryFolder folder;
  int compared = 0;
  for (const std::string& name : cluster_names()) {
    const System ready = load_system(name);
    const auto reference = reference_cluster(ready.groups.front().chip.name);
    ASSERT_TRUE(reference.has_value()) << name;
    for (const Provenance& entry : ready.provenance) {
      EXPECT_FALSE(entry.source.starts_with("left out")) << name << " " << entry.key;
    }
    if (reference->name != name) continue;
    write_file(folder / "ours.yaml", least_file(ready));
    System own = load_system(folder / "ours.yaml");
    EXPECT_EQ(own.groups.front().chip.host, ready.groups.front().chip.host) << name;
    std::vector<NetworkLevel> levels = own.levels, of_catalogue = ready.levels;
    levels.push_back(own.groups.front().intra_node);
    of_catalogue.push_back(ready.groups.front().intra_node);
    ASSERT_EQ(levels.size(), of_catalogue.size()) << name;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      EXPECT_EQ(levels[l].latency_s, of_catalogue[l].latency_s) << name << " " << l;
      EXPECT_EQ(levels[l].efficiency, of_catalogue[l].efficiency) << name << " " << l;
      EXPECT_EQ(levels[l].half_bytes, of_catalogue[l].half_bytes) << name << " " << l;
    }
    std::string said;
    for (const Provenance& entry : own.provenance) {
      EXPECT_TRUE(entry.assumed);
      said += entry.key + ": " + entry.source + "\n";
    }
    EXPECT_THAT(said, HasSubstr("ours: left out: latency")) << name;
    EXPECT_THAT(said, HasSubstr("as in " + name)) << name;
    EXPECT_EQ(said.find("host: left out") != std::string::npos,
              ready.groups.front().chip.host && !load_chip(reference_chip(ready)).host)
        << name;
    ++compared;
  }
  EXPECT_GT(compared, 15);
}

TEST(Defaults, OfAChipOfOnesOwnAreSaid) {
  const TemporaryFolder folder;
  const std::string chip =
      "name: ours\npeak: {bf16: 400 TFLOP/s}\nvector: 30 TFLOP/s\ncompute_units: 100\n"
      "memory: {name: HBM3, size: 100 GB, bandwidth: 3 TB/s}\n";
  write_file(folder / "chip.yaml", chip);
  const Chip all = load_chip(folder / "chip.yaml");
  EXPECT_EQ(all.efficiency, default_efficiency(ChipExecution::kernels));
  EXPECT_DOUBLE_EQ(all.reserved_bytes, kReservedShare * 100e9);
  ASSERT_EQ(all.provenance.size(), 2U);
  EXPECT_THAT(all.provenance[0].source, HasSubstr("3.8 % of the memory"));
  for (const char* entry : {"matmul 0.585", "host_operator 65.0 us", "tile 128 x 128 x 64"}) {
    EXPECT_THAT(all.provenance[1].source, HasSubstr(entry));
  }
  write_file(
      folder / "chip.yaml",
      chip + "reserved: 1 GB\nefficiency: {matmul: 0.7, overlap_loss: 0, tile: [1, 2, 3]}\n");
  const Chip some = load_chip(folder / "chip.yaml");
  EXPECT_DOUBLE_EQ(some.efficiency.matmul_peak_fraction, 0.7);
  EXPECT_DOUBLE_EQ(some.efficiency.overlap_loss, 0);
  ASSERT_EQ(some.provenance.size(), 1U);
  EXPECT_THAT(some.provenance[0].source, HasSubstr("left out: vector 0.6, attention 0.45"));
  EXPECT_EQ(some.provenance[0].source.find("matmul"), std::string::npos);
}

TEST(Defaults, HostMemoryMayBeNone) {
  const TemporaryFolder folder;
  const std::string cluster =
      "name: ours\nchip: h100-sxm\ndevices_per_node: 8\n"
      "intra_node: {name: NVLink, topology: switch, bandwidth: 450 GB/s}\n";
  write_file(folder / "ours.yaml", cluster);
  EXPECT_EQ(load_system(folder / "ours.yaml").groups.front().chip.host,
            load_system("dgx-h100").groups.front().chip.host);
  write_file(folder / "ours.yaml", cluster + "host: none\n");
  EXPECT_FALSE(load_system(folder / "ours.yaml").groups.front().chip.host);
  write_file(folder / "ours.yaml", cluster + "host: plenty\n");
  try {
    load_system(folder / "ours.yaml");
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("host: is no memory; write {size: 2 TB"));
  }
}

// A link that is shaped otherwise than the catalogue's is as most of its own kind.
TEST(Defaults, OfAnotherTopologyAreThoseOfItsKind) {
  const auto reference = reference_cluster("h100-sxm");
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->name, "dgx-h100");
  EXPECT_EQ(link_source(reference, Topology::switched, 1).defaults.latency_s, 7e-6);
  EXPECT_EQ(link_source(reference, Topology::torus, 1).defaults.latency_s, 1e-6);
  EXPECT_EQ(link_source(std::nullopt, Topology::switched, 0).defaults.latency_s, 3e-6);
  EXPECT_EQ(link_source(std::nullopt, Topology::switched, 2).defaults.latency_s, 8e-6);
  EXPECT_FALSE(reference_cluster("no such chip").has_value());
}

}  // namespace
}  // namespace braid
