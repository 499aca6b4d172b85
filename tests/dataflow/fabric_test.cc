#include "braid/dataflow/fabric.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr CollectiveRules kWithoutLatency{2, false};

Fabric tensor_fabric(FabricShape shape, std::int64_t size) {
  return {{{shape, size, 50e9, FabricRole::tensor}}, 0, 150e-9};
}

// The equations of DFModel's program for one dimension of eight chips.
TEST(Fabric, OneDimension) {
  const double bytes = 1e9, bandwidth = 50e9;
  const Fabric ring = tensor_fabric(FabricShape::ring, 8);
  const Fabric mesh = tensor_fabric(FabricShape::fully_connected, 8);
  const Fabric sw = tensor_fabric(FabricShape::switched, 8);
  const FabricRole role = FabricRole::tensor;
  EXPECT_DOUBLE_EQ(all_reduce_s(bytes, role, ring, kWithoutLatency), 2 * bytes * 7 / 8 / bandwidth);
  EXPECT_DOUBLE_EQ(all_reduce_s(bytes, role, mesh, kWithoutLatency), 2 * bytes / 8 / bandwidth);
  EXPECT_DOUBLE_EQ(all_reduce_s(bytes, role, sw, {1, false}), bytes * 7 / 8 / bandwidth);
  EXPECT_DOUBLE_EQ(all_gather_s(bytes, role, ring, kWithoutLatency), bytes * 7 / 8 / bandwidth);
  EXPECT_DOUBLE_EQ(all_to_all_s(bytes, role, ring, kWithoutLatency), bytes * 64 / 8 / bandwidth);
  EXPECT_DOUBLE_EQ(all_to_all_s(bytes, role, sw, kWithoutLatency), bytes * 8 / 4 / bandwidth);
  EXPECT_DOUBLE_EQ(all_reduce_s(0, role, ring, {2, true}), 2 * 7 * 150e-9);
  EXPECT_DOUBLE_EQ(all_reduce_s(0, role, mesh, {2, true}), 2 * 150e-9);
  EXPECT_DOUBLE_EQ(all_reduce_s(0, role, sw, {2, true}), 2 * 3 * 150e-9);
  EXPECT_EQ(all_reduce_s(bytes, FabricRole::data, ring, kWithoutLatency), 0);
  EXPECT_EQ(degree_of(ring, role), 8);
  EXPECT_EQ(degree_of(ring, FabricRole::pipeline), 1);
}

// Over two dimensions a hierarchical all-reduce moves what one over the product would: S (n-1)/n.
TEST(Fabric, DimensionsCompose) {
  const Fabric flat = tensor_fabric(FabricShape::ring, 32);
  Fabric split = flat;
  split.dimensions = {{FabricShape::ring, 8, 50e9, FabricRole::tensor},
                      {FabricShape::ring, 4, 50e9, FabricRole::tensor}};
  EXPECT_DOUBLE_EQ(all_reduce_s(1e9, FabricRole::tensor, split, kWithoutLatency),
                   all_reduce_s(1e9, FabricRole::tensor, flat, kWithoutLatency));
}

TEST(Fabric, RailOnlyDomains) {
  Fabric rail = tensor_fabric(FabricShape::switched, 8);
  rail.dimensions[0].bytes_per_s = 900e9;
  rail.dimensions.push_back({FabricShape::switched, 2, 50e9, FabricRole::pipeline});
  rail.domain_size = 8;
  EXPECT_DOUBLE_EQ(all_reduce_s(1e9, FabricRole::tensor, rail, {1, false}), 1e9 * 7 / 8 / 900e9);
  rail.domain_size = 1;
  EXPECT_DOUBLE_EQ(all_reduce_s(1e9, FabricRole::tensor, rail, {1, false}), 1e9 * 7 / 8 / 50e9);
  rail.domain_size = 4;
  EXPECT_DOUBLE_EQ(all_reduce_s(1e9, FabricRole::tensor, rail, {1, false}),
                   1e9 * (3.0 / 4 / 900e9 + 1.0 / 8 / 50e9));
}

// DLRM on 1024 H100 in a 32 x 32 torus of NVLink: 15,237,120 ns for 837,000 bytes a pair.
TEST(Fabric, ExchangeOnATorus) {
  const Fabric torus{{{FabricShape::ring, 32, 450e9, FabricRole::none},
                      {FabricShape::ring, 32, 450e9, FabricRole::none}},
                     0,
                     0};
  EXPECT_NEAR(exchange_s(837000, torus), 15237120e-9, 1e-12);
  const Fabric cube{{{FabricShape::ring, 8, 450e9, FabricRole::none},
                     {FabricShape::ring, 8, 450e9, FabricRole::none},
                     {FabricShape::ring, 16, 450e9, FabricRole::none}},
                    0,
                    0};
  EXPECT_DOUBLE_EQ(exchange_s(837000, cube), exchange_s(837000, torus) / 2);
  // Four dimensions: the longest ring is cut, through two links of each of the 1024/8 others.
  Fabric four = cube;
  four.dimensions = {{FabricShape::ring, 4, 450e9, FabricRole::none},
                     {FabricShape::ring, 4, 450e9, FabricRole::none},
                     {FabricShape::ring, 8, 450e9, FabricRole::none},
                     {FabricShape::ring, 8, 450e9, FabricRole::none}};
  EXPECT_DOUBLE_EQ(exchange_s(837000, four), 837000 * 512.0 * 1024 / (450e9 * 2 * 128));
}

}  // namespace
}  // namespace braid
