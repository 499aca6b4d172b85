#include "braid/validate/hardware_words.h"

#include <gtest/gtest.h>

#include "braid/validate/hardware.h"

namespace braid {

void PrintTo(const NamedHardware& named, std::ostream* out) {
  *out << named.cluster << " x " << named.count << (named.nodes ? " nodes" : "");
}

namespace {

using Named = std::vector<NamedHardware>;

TEST(HardwareWords, OneType) {
  EXPECT_EQ(named_hardware("A100-SXM4-80GB (Selene)"), (Named{{"dgx-a100", 0, false}}));
  EXPECT_EQ(named_hardware("a100_40gb"), (Named{{"p4d.24xlarge", 0, false}}));
  EXPECT_EQ(named_hardware("V100 16GB"), (Named{{"p3.16xlarge", 0, false}}));
  EXPECT_EQ(named_hardware("AWS p3.8xlarge (V100)"), (Named{{"p3.8xlarge", 0, true}}));
  EXPECT_EQ(named_hardware("dgx-h100"), (Named{{"dgx-h100", 0, true}}));
  EXPECT_EQ(named_hardware("A100-PCIE-80GB"), (Named{{"a100-pcie-server", 0, false}}));
  EXPECT_EQ(named_hardware("H100 PCIe"), (Named{{"h100-pcie-server", 0, false}}));
  EXPECT_EQ(named_hardware("8xA100"), (Named{{"dgx-a100", 8, false}}));
  EXPECT_EQ(named_hardware("A100 (single node; NVLink 150GB/s, 80GB)"),
            (Named{{"dgx-a100", 0, false}}));
  // The node says more than its chip.
  EXPECT_EQ(named_hardware("A100-80GB, p4de.24xlarge"), (Named{{"p4de.24xlarge", 0, true}}));
  EXPECT_EQ(named_hardware("GH200 96GB"), (Named{{"gh200-quad", 0, false}}));
  EXPECT_EQ(named_hardware("8x RTX 2080 Ti"), (Named{{"rtx-2080-ti-server", 8, false}}));
  EXPECT_EQ(named_hardware("GeForce RTX 2080"), (Named{{"rtx-2080-server", 0, false}}));
  EXPECT_EQ(named_hardware("RTX3090"), (Named{{"rtx-3090-server", 0, false}}));
  EXPECT_EQ(named_hardware("RTX 3090"), (Named{{"rtx-3090-server", 0, false}}));
  EXPECT_EQ(named_hardware("TITAN RTX"), (Named{{"titan-rtx-server", 0, false}}));
  // Neither L40S nor XL4 is an L4.
  EXPECT_EQ(named_hardware("L40S"), (Named{{"l40s-server", 0, false}}));
  EXPECT_EQ(named_hardware("L40"), Named{});
  EXPECT_EQ(named_hardware("XL4"), Named{});
  EXPECT_EQ(named_hardware(""), Named{});
}

TEST(HardwareWords, SeveralTypes) {
  const Named nodes = {{"p3.8xlarge", 3, true}, {"g4dn.12xlarge", 1, true}};
  EXPECT_EQ(named_hardware("3x p3.8xlarge (V100 16GB) + 1x g4dn.12xlarge (T4)"), nodes);
  EXPECT_EQ(named_hardware("3 x AWS p3.8xlarge and 1 x g4dn.12xlarge"), nodes);
  EXPECT_EQ(named_hardware("p3.8xlarge:3nodes+g4dn.12xlarge:1nodes"), nodes);
  EXPECT_EQ(named_hardware("mixed: 12 V100 (p3.8xlarge) + 4 T4 (g4dn.12xlarge)"),
            (Named{{"p3.8xlarge", 12, false}, {"g4dn.12xlarge", 4, false}}));
  EXPECT_EQ(named_hardware("V100-16GB x12, T4 x4"),
            (Named{{"p3.16xlarge", 12, false}, {"g4dn.12xlarge", 4, false}}));
  EXPECT_EQ(named_hardware("8xA100 + 8xV100"),
            (Named{{"dgx-a100", 8, false}, {"dgx-1", 8, false}}));
  EXPECT_EQ(named_hardware("A100/V100"), (Named{{"dgx-a100", 0, false}, {"dgx-1", 0, false}}));
}

RunSystem system_with(const std::string& hardware, std::int64_t devices,
                      std::int64_t devices_per_node) {
  MeasuredRun run;
  run.hardware = hardware;
  run.devices = devices;
  run.devices_per_node = devices_per_node;
  return system_of(run);
}

TEST(Hardware, MixedClustersStandInTheOrderOfTheText) {
  for (const char* text : {"3x p3.8xlarge + 1x g4dn.12xlarge", "12x V100 + 4x T4"}) {
    const RunSystem run = system_with(text, 16, 4);
    ASSERT_EQ(run.reason, "") << text;
    ASSERT_EQ(run.system.groups.size(), 2U);
    EXPECT_EQ(run.system.groups[0].chip.name, "v100-sxm-16gb");
    EXPECT_EQ(run.system.groups[0].nodes, 3);
    EXPECT_EQ(run.system.groups[1].chip.name, "t4");
    EXPECT_EQ(run.system.device_count, 16);
  }
  EXPECT_EQ(system_with("V100 + T4", 16, 4).reason,
            "hardware 'V100 + T4': how many of its 16 devices are of each type is not said");
  EXPECT_EQ(system_with("12x V100 + 8x T4", 16, 4).reason,
            "hardware '12x V100 + 8x T4': how many of its 16 devices are of each type is not said");
}

TEST(Hardware, SmallerNodesKeepEachDevicesShareOfTheNetwork) {
  const System whole = system_with("A100", 64, 8).system;
  const System half = system_with("A100 (Perlmutter)", 64, 4).system;
  EXPECT_EQ(whole.groups.front().nodes, 8);
  EXPECT_EQ(half.groups.front().nodes, 16);
  EXPECT_EQ(half.groups.front().intra_node.size, 4);
  EXPECT_EQ(half.levels.front().size, 16);
  EXPECT_DOUBLE_EQ(half.levels.front().bytes_per_s, whole.levels.front().bytes_per_s);
  EXPECT_DOUBLE_EQ(half.levels.front().unit_bytes_per_s, whole.levels.front().unit_bytes_per_s / 2);
  // A rack is not a node.
  EXPECT_EQ(system_with("GB200", 64, 4).system.groups.front().devices_per_node, 64);
}

}  // namespace
}  // namespace braid
