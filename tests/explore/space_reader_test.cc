#include "braid/explore/space_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SpaceReader, QuantitiesAndDefaults) {
  const Space whole = space_from(small_space_text());
  EXPECT_EQ(point_count(whole), 64U);
  EXPECT_TRUE(whole.has_prices && whole.has_powers);
  const DataflowSpace& space = dataflow_of(whole);
  EXPECT_EQ(space.devices, 8);
  EXPECT_TRUE(space.published_rules);
  ASSERT_EQ(space.chips.size(), 2U);
  EXPECT_EQ(space.chips[0].chip.sram_bytes, 4 * 1024 * 1024);
  EXPECT_FALSE(space.chips[0].kernel_by_kernel);
  EXPECT_TRUE(space.chips[1].kernel_by_kernel);
  EXPECT_EQ(space.memories[0].w_per_gb_per_s, 0.16);
  const DataflowLinks& wide = space.links[1];
  EXPECT_EQ(wide.bytes_per_s, (std::vector<double>{100e9, 20e9}));
  EXPECT_EQ(wide.w_per_gb_per_s, (std::vector<double>{0.01, 0.05}));
  EXPECT_EQ(wide.port_usd_per_gb_per_s, 24);
  EXPECT_EQ(space.links[0].latency_s, 1e-6);
  // A price per other units is the same price.
  EXPECT_DOUBLE_EQ(dataflow_of(space_from(with("2 USD per GB/s", "2 kUSD per TB/s")))
                       .memories[1]
                       .usd_per_gb_per_s,
                   2);
}

TEST(SpaceReader, PointsCountEachCombinationOnce) {
  const Space space = space_from(small_space_text());
  std::vector<SpacePoint> seen;
  for (std::size_t number = 0; number < point_count(space); ++number) {
    const SpacePoint point = point_of(space, number);
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      EXPECT_LT(point[axis], space.axes[axis].values.size());
    }
    EXPECT_EQ(std::find(seen.begin(), seen.end(), point), seen.end());
    seen.push_back(point);
  }
}

TEST(SpaceReader, SetupsHaveWhatThePointNames) {
  const Space whole = space_from(small_space_text());
  const DataflowSpace& space = dataflow_of(whole);
  // Transformer, given, plain, fast, torus, wide.
  const DataflowSetup setup = setup_of(space, {0, 0, 1, 1, 0, 1});
  EXPECT_EQ(setup.chip.dram_bytes_per_s, 500e9);
  EXPECT_EQ(setup.chip.clock_hz, 2e9);
  ASSERT_EQ(setup.fabric.dimensions.size(), 2U);
  EXPECT_EQ(setup.fabric.dimensions[1].bytes_per_s, 20e9);
  EXPECT_EQ(setup.fabric.dimensions[1].role, FabricRole::data);
  EXPECT_TRUE(setup.kernel_by_kernel);
  EXPECT_EQ(setup.job.tile, 128);  // Kernel by kernel a whole sample at once.
  EXPECT_EQ(setup_of(space, {0, 0, 0, 1, 0, 1}).job.tile, 1);
  EXPECT_EQ(setup.prices.chip_usd, 1500);
  EXPECT_EQ(setup.prices.link_w[2], 0.05);
}

struct Mistake {
  const char* from;
  const char* to;
  const char* where;  ///< Of the message.
  const char* what;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.to; }

class SpaceMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(SpaceMistakes, AreOneClearLine) {
  const Mistake& mistake = GetParam();
  const std::string text = with(mistake.from, mistake.to);
  ASSERT_FALSE(text.empty()) << "the text has no " << mistake.from;
  try {
    space_from(text);
    FAIL() << "accepted " << mistake.to;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(mistake.where));
    EXPECT_THAT(error.what(), HasSubstr(mistake.what));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SpaceMistakes,
    ::testing::Values(
        Mistake{"devices: 8", "device: 8", "space.yaml:2", "did you mean 'devices'"},
        Mistake{"devices: 8", "devices: 0", "space.yaml:2", "devices"},
        Mistake{"rules: dfmodel", "rules: braid", "space.yaml:3", "'dfmodel-charged'"},
        Mistake{"rules: dfmodel", "rules: dfmodl", "space.yaml:3", "did you mean 'dfmodel'"},
        Mistake{"rules: dfmodel\n", "", "topologies", "rules: dfmodel"},
        Mistake{"tiles: 64", "precision: fp8, tiles: 64", "chips.flow.precision", "unknown key"},
        // What is missing is not nothing.
        Mistake{", price: 1000 USD", "", "space.yaml:9: chips.flow",
                "the chip 'flow' has no price"},
        Mistake{", power: 120 W", "", "chips.plain", "leave power out of what is compared"},
        Mistake{"price: 1 USD per GB/s, ", "", "memories.slow", "the memory 'slow' has no price"},
        Mistake{", port_price: 12 USD per GB/s", "", "links.thin", "has no port_price"},
        Mistake{"devices: 8", "devices: 8\ncompare: [cost]", "compare[0]", "unknown figure"},
        Mistake{"devices: 8", "devices: 12", "sizes", "do not multiply to the 12 devices"},
        Mistake{"sizes: [4, 2]", "sizes: [4, 3]", "topologies.torus.sizes",
                "do not multiply to the 8 devices"},
        Mistake{"sizes: [4, 2]", "sizes: [8]", "topologies.torus.sizes", "do not multiply"},
        Mistake{", sizes: [8], roles: [tensor]", "", "topologies.mesh", "sizes are not given"},
        Mistake{", roles: [tensor, data]", "", "topologies.torus", "divide is not given"},
        Mistake{"roles: [tensor, data]", "roles: [tensor]", "topologies.torus.roles", "1 roles"},
        Mistake{"roles: [tensor, data]", "roles: [tensor, sequence]", "roles[1]", "unknown role"},
        Mistake{"[ring, ring]", "[ring, rng]", "dimensions[1]", "did you mean 'ring'"},
        Mistake{"[ring, ring]", "[]", "topologies.torus.dimensions", "one to four dimensions"},
        Mistake{"[ring, ring]", "[ring, ring, ring, ring, ring]", "topologies.torus.dimensions",
                "one to four dimensions"},
        Mistake{"tiles: 64", "tiles: 0", "chips.flow.tiles", "0"},
        Mistake{"tile: [8, 8]", "tile: [8]", "chips.flow.tile", "width and a height"},
        Mistake{"tiles: 64", "tilse: 64", "chips.flow.tilse", "did you mean 'tiles'"},
        Mistake{"clock: 1 GHz", "clock: 1", "chips.flow.clock", "unit"},
        Mistake{"style: kernel-by-kernel", "style: kernels", "chips.plain.style", "unknown style"},
        Mistake{"tiles: 64, tile: [8, 8], clock: 1 GHz, sram: 4 MiB", "catalogue: h101-sxm",
                "chips.flow.catalogue", "h101-sxm"},
        Mistake{"memories:\n", "memories: {}\nmemory:\n", "memor", "memor"},
        Mistake{"parallelism: [given, shapes]", "parallelism: []", "parallelism", "no values"},
        Mistake{"parallelism: [given, shapes]", "parallelism: [given, given]", "parallelism[1]",
                "twice"},
        Mistake{"parallelism: [given, shapes]", "parallelism: all", "parallelism",
                "unknown parallelism"},
        Mistake{"bandwidth: 20 GB/s", "bandwidth: 0 GB/s", "memories.slow.bandwidth", "zero"},
        Mistake{"bandwidth: [100 GB/s, 20 GB/s]", "bandwidth: []", "links.wide.bandwidth",
                "one to 4"},
        Mistake{"0.16 W per GB/s", "0.16 W", "memories.slow.power", "W per GB/s"},
        Mistake{"0.16 W per GB/s", "0.16 W per GB", "memories.slow.power", "W per GB/s"},
        Mistake{"kind: fft", "kind: fourier", "workloads.fold.kind", "unknown kind of workload"},
        Mistake{"heads: 8", "heads: 7", "workloads.tiny.heads", "do not divide"},
        Mistake{"global_batch: 32", "global_batch: 1", "topologies.torus", "2 data-parallel"},
        Mistake{"hidden: 512, heads: 8", "hidden: 1000000000000, heads: 8", "workloads.tiny.hidden",
                "1000000000000"},
        Mistake{"points: 1048576", "points: 1", "workloads.fold.points", "1"},
        Mistake{"kind: fft, points: 1048576, radix: 32", "kind: dfmodel, file: none.txt",
                "none.txt", "none.txt"},
        Mistake{"kind: fft, points: 1048576, radix: 32", "kind: hpl, side: 1000000, block: 1",
                "workloads.fold.block", "1000000 iterations"},
        Mistake{"  fold:", "  'a/b':", "workloads.a/b", "file's name"},
        Mistake{"above: {links: wide}", "above: {links: broad}", "ratios[0].above.links",
                "unknown links"},
        Mistake{"above: {links: wide}", "above: {link: wide}", "ratios[0].above.link", "links"},
        Mistake{"of: utilisation", "of: speed", "ratios[0].of", "unknown figure"}));

TEST(SpaceReader, AnAxisNeedsValues) {
  for (const char* axis : {"workloads", "chips", "memories", "topologies", "links"}) {
    std::string text = small_space_text();
    const std::size_t begin = text.find(std::string("\n") + axis + ":") + 1;
    std::size_t end = text.find("\n", begin) + 1;
    while (text.compare(end, 2, "  ") == 0) end = text.find("\n", end) + 1;
    text = text.substr(0, text.find("ratios:"));
    for (const std::string& with_axis :
         {std::string(), axis + std::string(": {}\n"), axis + std::string(":\n")}) {
      try {
        space_from(text.substr(0, begin) + with_axis + text.substr(end));
        FAIL() << axis << " " << with_axis;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(axis));
      }
    }
  }
}

TEST(SpaceReader, CanonicalTextTellsSpacesApart) {
  const std::string text = canonical_text(space_from(small_space_text()));
  EXPECT_EQ(text, canonical_text(space_from(small_space_text())));
  // Names of the space and ratios change no result.
  EXPECT_EQ(text, canonical_text(space_from(with("name: small", "name: other"))));
  EXPECT_EQ(text, canonical_text(space_from(with("published: 2", "published: 3"))));
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {"hidden: 512", "hidden: 1024"},
           {"radix: 32", "radix: 2"},
           {"sram: 4 MiB", "sram: 5 MiB"},
           {"0.16 W per", "0.17 W per"},
           {"sizes: [4, 2]", "sizes: [2, 4]"},
           {"latency: 1 us", "latency: 2 us"},
           {"name: small", "overlap: none"},
           {"rules: dfmodel", "rules: dfmodel-charged"},
           {"name: small", "sustained: 0.8"},
           {"roles: [tensor, data]", "roles: [data, tensor]"}}) {
    EXPECT_NE(text, canonical_text(space_from(with(from, to)))) << to;
  }
}

TEST(SpaceReader, TakesChipsOfTheCatalogue) {
  const Space whole =
      space_from(with("tiles: 64, tile: [8, 8], clock: 1 GHz, sram: 4 MiB", "catalogue: sn30"));
  const DataflowSpace& space = dataflow_of(whole);
  EXPECT_GT(peak_flops_per_s(space.chips[0].chip), 100e12);
  EXPECT_EQ(space.chips[0].usd, 1000);
}

}  // namespace
}  // namespace braid
