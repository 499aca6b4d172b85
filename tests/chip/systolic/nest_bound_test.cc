#include "braid/chip/systolic/nest_bound.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/infinity.h"
#include "braid/chip/systolic/nest_mapper.h"

#include "chip/systolic/tiled_words.h"

namespace braid {
namespace {

/// Words that loops over tiles in an order move, by walking through them.
double walked_words(const std::array<std::int64_t, 3>& sizes,
                    const std::array<std::int64_t, 3>& tile, const std::array<int, 3>& order) {
  std::array<std::vector<std::int64_t>, 3> pieces;
  for (std::size_t d = 0; d < 3; ++d) {
    for (std::int64_t at = 0; at < sizes[d]; at += tile[d]) {
      pieces[d].push_back(std::min(tile[d], sizes[d] - at));
    }
  }
  const auto count = [&](int p) {
    return pieces[static_cast<std::size_t>(order[static_cast<std::size_t>(p)])].size();
  };
  std::array<std::pair<std::size_t, std::size_t>, 3> here;
  here.fill({static_cast<std::size_t>(-1), 0});
  std::set<std::pair<std::size_t, std::size_t>> begun;
  double words = 0;
  std::array<std::size_t, 3> i{};
  for (std::size_t a = 0; a < count(0); ++a) {
    for (std::size_t b = 0; b < count(1); ++b) {
      for (std::size_t c = 0; c < count(2); ++c) {
        i[static_cast<std::size_t>(order[0])] = a;
        i[static_cast<std::size_t>(order[1])] = b;
        i[static_cast<std::size_t>(order[2])] = c;
        for (std::size_t lacks = 0; lacks < 3; ++lacks) {
          const std::size_t x = (lacks + 1) % 3, y = (lacks + 2) % 3;
          const std::pair<std::size_t, std::size_t> key{i[x], i[y]};
          if (here[lacks] == key) continue;
          here[lacks] = key;
          const auto size = static_cast<double>(pieces[x][i[x]] * pieces[y][i[y]]);
          words += size;
          if (lacks == 2 && !begun.insert(key).second) words += size;
        }
      }
    }
  }
  return words;
}

double fewest_walked_words(const std::array<std::int64_t, 3>& sizes, double buffer) {
  double fewest = kInfinity;
  std::array<std::int64_t, 3> tile{};
  for (tile[0] = 1; tile[0] <= sizes[0]; ++tile[0]) {
    for (tile[1] = 1; tile[1] <= sizes[1]; ++tile[1]) {
      for (tile[2] = 1; tile[2] <= sizes[2]; ++tile[2]) {
        const auto held =
            static_cast<double>(tile[0] * tile[1] + tile[1] * tile[2] + tile[0] * tile[2]);
        if (held > buffer) continue;
        std::array<int, 3> order = {0, 1, 2};
        do {
          fewest = std::min(fewest, walked_words(sizes, tile, order));
        } while (std::next_permutation(order.begin(), order.end()));
      }
    }
  }
  return fewest;
}

TEST(NestBound, TiledWordsAreTheFewestOfAllTilesAndOrders) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    std::array<std::int64_t, 3> sizes{};
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() % 6);
    const double buffer = 2 + static_cast<double>(random() % 40);
    const double found = test::least_tiled_words(gemm_nest(sizes[0], sizes[1], sizes[2]), buffer);
    EXPECT_EQ(found, fewest_walked_words(sizes, buffer)) << trial;
    EXPECT_LE(least_words(gemm_nest(sizes[0], sizes[1], sizes[2]), buffer), found * (1 + 1e-12));
  }
}

TEST(NestBound, MappingsMoveNoFewerWords) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 12; ++trial) {
    const auto size = [&] { return static_cast<std::int64_t>(1 + random() % 300); };
    const LoopNest nest = gemm_nest(size(), size(), size());
    SystolicMachine machine{
        .cores = 1 + static_cast<std::int64_t>(random() % 9),
        .array = {.rows = 8, .columns = 16, .words_per_cycle = 40},
        .buffers = {.l2_words = 2048,
                    .l2_per_operand = true,
                    .global_words = 20000 + static_cast<double>(random() % 90000),
                    .global_words_per_cycle = 32,
                    .hbm_words_per_cycle = 2}};
    const MappedNest mapped = map_nest(nest, machine);
    ASSERT_EQ(mapped.status, NestStatus::optimal);
    const double tiled = test::least_tiled_words(nest, machine.buffers.global_words);
    EXPECT_GE(mapped.cost.hbm_words, tiled * (1 - 1e-12)) << trial;
    EXPECT_GE(tiled, least_words(nest, machine.buffers.global_words) * (1 - 1e-12)) << trial;
    EXPECT_GE(mapped.gap(), -1e-12);
  }
}

TEST(NestLaws, MoreOfAnythingIsNeverSlower) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 40; ++trial) {
    const auto size = [&] { return static_cast<std::int64_t>(1 + random() % 300); };
    LoopNest nest = gemm_nest(size(), size(), size(), 1 + static_cast<std::int64_t>(random() % 3));
    if (random() % 3 == 0) nest.window = {.used = true, .slope = 1.0 / 9, .offset = 12};
    SystolicMachine machine{
        .cores = 1 + static_cast<std::int64_t>(random() % 6),
        .array = {.rows = 4, .columns = 8, .words_per_cycle = 16},
        .buffers = {.l2_words = 300,
                    .l2_per_operand = random() % 2 == 0,
                    .global_words = 6000 + static_cast<double>(random() % 9000),
                    .global_words_per_cycle = 24,
                    .hbm_words_per_cycle = 1 + static_cast<double>(random() % 8)}};
    const double before = map_nest(nest, machine).cost.cycles;
    ASSERT_LT(before, kInfinity);
    const auto no_slower = [&](SystolicMachine larger, const char* what) {
      EXPECT_LE(map_nest(nest, larger).cost.cycles, before * (1 + 1e-12)) << what << ' ' << trial;
    };
    SystolicMachine larger = machine;
    larger.cores += 1 + static_cast<std::int64_t>(random() % 4);
    no_slower(larger, "cores");
    larger = machine;
    larger.buffers.l2_words += static_cast<double>(random() % 300);
    no_slower(larger, "L2");
    larger = machine;
    larger.buffers.global_words += static_cast<double>(random() % 6000);
    no_slower(larger, "global buffer");
    larger = machine;
    larger.buffers.global_words_per_cycle *= 1.5;
    larger.buffers.hbm_words_per_cycle *= 1.1;
    larger.array.words_per_cycle *= 1.2;
    larger.array.unit_words += 1;
    no_slower(larger, "rates");
  }
}

/// A published count of words that passed between a memory and a buffer below it.
struct PublishedWords {
  LoopNest nest;
  double buffer_words = 0, words = 0;
};

/// DRAM traffic of CUTLASS on A100 with parts of its L2, for 4096 x 4096 x 4096 in f32
/// (NVlabs/timeloop, orojenesis/orojenesis_single.ipynb, figure 24a: bytes), on plain and on tensor
/// cores; and of the mappings that Timeloop found for a convolution of 3 x 3 with stride 2 on 224 x
/// 224 x 3 to 32 channels (Accelergy-Project/timeloop-accelergy-exercises, example_designs,
/// ref_outputs: tiles held above DRAM, all levels together, and DRAM's reads and updates).
std::vector<PublishedWords> published_words() {
  std::vector<PublishedWords> published;
  constexpr double kMiB = 0x1p20, kWord = 4;
  for (const auto& [l2_mib, simt_mib, tensor_mib] :
       {std::array{2.0, 2.69 * 1024, 1.58 * 1024}, std::array{24.0, 650.0, 561.51},
        std::array{40.0, 533.0, 411.06}, std::array{50.0, 373.39, 373.33}}) {
    for (const double mib : {simt_mib, tensor_mib}) {
      published.push_back({gemm_nest(4096, 4096, 4096), l2_mib * kMiB / kWord, mib * kMiB / kWord});
    }
  }
  const LoopNest convolution{
      .batch = 1,
      .m = 112 * 112,
      .n = 32,
      .k = 27,
      .window = {.used = true, .slope = 224.0 * 224 / (112 * 112 * 9), .offset = 224.0 / 9}};
  published.push_back({convolution, 432 + 9831 + 16 * 56, 13824 + 157296 + 401408});
  published.push_back({convolution, 864 + 11475 + 28672, 864 + 151875 + 401408});
  published.push_back({convolution, 9831 + 6272 + 14 * 9 * 24, 13824 + 157296 + 401408});
  return published;
}

TEST(NestBound, NothingPublishedMovesFewerWords) {
  for (const PublishedWords& one : published_words()) {
    const double tiled = test::least_tiled_words(one.nest, one.buffer_words);
    EXPECT_LE(least_words(one.nest, one.buffer_words), one.words);
    // Timeloop's tiles are rectangles of an image and keep what neighbours share; ours are rows.
    EXPECT_LE(tiled, one.words * (one.nest.window.used ? 1.025 : 1));
    // And the bound says something: what is published is at most so many times as much.
    EXPECT_LE(one.words, 4 * tiled);
  }
}

}  // namespace
}  // namespace braid
