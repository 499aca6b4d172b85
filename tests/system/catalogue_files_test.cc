#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/system/system.h"

#include "support/source_path.h"

namespace braid {
namespace {

/// Calls `check` with the root of every file of `folder`, and its name without extension.
template <typename Check>
void for_each_file(const std::string& folder, const Check& check) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("data/" + folder))) {
    const Document document = Document::parse_file(entry.path().string());
    check(document.root(), entry.path().stem().string());
    ++files;
  }
  EXPECT_GT(files, 10);
}

std::set<std::string> keys_with_provenance(const Value& root) {
  std::set<std::string> keys;
  for (const char* map : {"sources", "assumed"}) {
    if (!root[map].exists()) continue;
    for (const auto& [key, source] : root[map].members()) {
      EXPECT_GE(source.as_string().size(), 10U) << source.where().file << " " << key;
      EXPECT_TRUE(keys.insert(std::string(key)).second)
          << source.where().file << ": both sourced and assumed: " << key;
    }
  }
  return keys;
}

TEST(CatalogueFiles, EveryFigureOfAChipSaysWhereItIsFrom) {
  for_each_file("chips", [](const Value& root, const std::string& name) {
    EXPECT_EQ(root["name"].as_string(), name);
    const std::set<std::string> known = keys_with_provenance(root);
    std::set<std::string> figures;
    for (const auto& [key, value] : root.members()) {
      const std::string figure(key);
      static const std::set<std::string> kWords = {"name", "description", "kind", "sources",
                                                   "assumed"};
      if (kWords.contains(figure)) continue;
      figures.insert(figure);
      EXPECT_TRUE(known.contains(figure)) << name << ": " << figure;
    }
    EXPECT_EQ(known, figures) << name;
    EXPECT_GE(root["description"].as_string().size(), 10U) << name;
  });
}

TEST(CatalogueFiles, EveryFigureOfAClusterSaysWhereItIsFrom) {
  for_each_file("clusters", [](const Value& root, const std::string& name) {
    EXPECT_EQ(root["name"].as_string(), name);
    const std::set<std::string> known = keys_with_provenance(root);
    for (const auto& [key, value] : root.members()) {
      const std::string figure(key);
      if (figure == "name" || figure == "description" || figure == "sources" ||
          figure == "assumed") {
        continue;
      }
      EXPECT_TRUE(known.contains(figure)) << name << ": " << figure;
    }
    EXPECT_TRUE(known.contains("latency")) << name;
    EXPECT_TRUE(known.contains("efficiency")) << name;
    EXPECT_NO_THROW(load_chip(std::string(root["chip"].as_string()))) << name;
  });
}

/// Rates of one chip in their usual order: half the width is never slower.
TEST(CatalogueFiles, NarrowFormatsAreNotSlowerThanWideOnes) {
  const std::pair<Dtype, Dtype> narrow_and_wide[] = {
      {Dtype::f4, Dtype::f8},    {Dtype::f8, Dtype::bf16},  {Dtype::f8, Dtype::f16},
      {Dtype::i8, Dtype::bf16},  {Dtype::i8, Dtype::f16},   {Dtype::bf16, Dtype::tf32},
      {Dtype::f16, Dtype::tf32}, {Dtype::tf32, Dtype::f32}, {Dtype::f16, Dtype::f32},
      {Dtype::f32, Dtype::f64}};
  int compared = 0;
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    for (const auto& [narrow, wide] : narrow_and_wide) {
      const auto fast = matmul_peak(chip, narrow);
      const auto slow = matmul_peak(chip, wide);
      if (!fast || !slow) continue;
      EXPECT_GE(*fast, *slow) << name << " " << name_of(narrow) << " " << name_of(wide);
      ++compared;
    }
    const auto bf16 = matmul_peak(chip, Dtype::bf16);
    const auto f16 = matmul_peak(chip, Dtype::f16);
    EXPECT_TRUE(bf16 || f16) << name;
    if (bf16 && f16) {
      EXPECT_EQ(*bf16, *f16) << name;
    }
  }
  EXPECT_GT(compared, 60);
}

/// Figures that cannot be a slip of a unit.
TEST(CatalogueFiles, FiguresAreOfThePlausibleMagnitude) {
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    for (const PeakRate& peak : chip.peaks) {
      EXPECT_GE(peak.matmul_flops_per_s, 5e12) << name;
      EXPECT_LE(peak.matmul_flops_per_s, 2e16) << name;
    }
    // Phaze's vector cores have one unit for each column of an array.
    EXPECT_GE(chip.vector_flops_per_s, chip.accelerator ? 1e11 : 1e12) << name;
    EXPECT_GE(chip.memory.bytes, 8e9) << name;
    EXPECT_LE(chip.memory.bytes, 2e12) << name;
    EXPECT_GE(chip.memory.bytes_per_s, 1e11) << name;
    EXPECT_LE(chip.memory.bytes_per_s, 2.1e16) << name;
    EXPECT_LT(chip.reserved_bytes, 0.15 * chip.memory.bytes) << name;
    if (chip.on_chip) {
      EXPECT_GT(chip.on_chip->bytes_per_s, chip.memory.bytes_per_s) << name;
      EXPECT_LT(chip.on_chip->bytes, chip.memory.bytes) << name;
    }
    if (chip.power_w) {
      EXPECT_GE(*chip.power_w, 50) << name;
      EXPECT_LE(*chip.power_w, 25e3) << name;
    }
  }
  for (const std::string& name : cluster_names()) {
    const System system = load_system(name);
    const DeviceGroup& group = system.groups.front();
    EXPECT_GE(group.intra_node.bytes_per_s, 3e9) << name;
    // One that a program charges, which nobody builds.
    const bool as_charged = name.ends_with("-as-charged");
    EXPECT_LE(group.intra_node.bytes_per_s, as_charged ? 5e12 : 1e12) << name;
    for (const NetworkLevel& level : system.levels) {
      EXPECT_LE(level.bytes_per_s, group.intra_node.bytes_per_s) << name;
      EXPECT_LE(level.unit_bytes_per_s,
                level.bytes_per_s * static_cast<double>(group.devices_per_node) * (1 + 1e-12))
          << name;
      EXPECT_GE(level.latency_s, group.intra_node.latency_s) << name;
    }
  }
}

/// Published figures, straight from the documents that the files name.
TEST(CatalogueFiles, SpotChecks) {
  EXPECT_EQ(matmul_peak(load_chip("h100-sxm"), Dtype::bf16), 989.4e12);
  EXPECT_EQ(matmul_peak(load_chip("v100-sxm-16gb"), Dtype::f16), 125e12);
  EXPECT_FALSE(matmul_peak(load_chip("v100-sxm-16gb"), Dtype::bf16));
  EXPECT_EQ(matmul_peak(load_chip("t4"), Dtype::f16), 65e12);
  EXPECT_EQ(matmul_peak(load_chip("tpu-v5p"), Dtype::bf16), 459e12);
  EXPECT_EQ(load_chip("mi300x").compute_units, 304);
  EXPECT_EQ(load_chip("v100-sxm-16gb").compute_capability, 7.0);
  EXPECT_EQ(load_chip("gb300").compute_capability, 10.3);
  EXPECT_FALSE(load_chip("mi300x").compute_capability);  // CUDA's, which it does not run.
  EXPECT_EQ(load_chip("sn40l").host->bytes, 1.5 * 0x1p40);
  EXPECT_FALSE(load_chip("tpu-v5p").power_w);  // Not published, so not given.
  EXPECT_EQ(load_system("gb200-nvl72:144").groups[0].nodes, 2);
  EXPECT_EQ(load_system("dgx-2:32").groups[0].devices_per_node, 16);
  // 3200 Gb/s are 400 GB/s.
  EXPECT_EQ(load_system("p5.48xlarge:2nodes").levels[0].unit_bytes_per_s, 400e9);
  EXPECT_EQ(load_system("p3.8xlarge:2nodes").groups[0].intra_node.bytes_per_s, 21.25e9);
}

}  // namespace
}  // namespace braid
