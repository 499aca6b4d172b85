#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/program/random_tensor.h"

#include "backend/node_program.h"
#include "base/error_text.h"

// Operations that ONNX's test data of Debian 12 do not have, held against their definitions.

namespace braid {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

std::vector<double> compute(const NodeProgram& node, const std::vector<DenseTensor>& inputs) {
  return numbers_of<double>(node.compute(inputs).front());
}

TEST(NewerOperations, Bitwise) {
  const std::vector<DenseTensor> bytes{wholes({3}, {12, 255, 1}, ElementType::u8),
                                       wholes({3}, {10, 15, 2}, ElementType::u8)};
  EXPECT_THAT(compute({.operation = "BitwiseAnd"}, bytes), ElementsAre(8, 15, 0));
  EXPECT_THAT(compute({.operation = "BitwiseOr"}, bytes), ElementsAre(14, 255, 3));
  EXPECT_THAT(compute({.operation = "BitwiseXor"}, bytes), ElementsAre(6, 240, 3));
  EXPECT_THAT(compute({.operation = "BitwiseNot"}, {bytes[0]}), ElementsAre(243, 0, 254));
}

TEST(NewerOperations, Activations) {
  const std::vector<double> x{-2, -0.5, 0, 1, 3};
  const DenseTensor input = reals({5}, x, ElementType::f64);
  std::vector<double> gelu, tanh_gelu, mish, swish, quick;
  for (const double each : x) {
    gelu.push_back(each * std::erfc(-each / std::sqrt(2)) / 2);
    tanh_gelu.push_back(
        each / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (each + 0.044715 * std::pow(each, 3)))));
    mish.push_back(each * std::tanh(std::log(1 + std::exp(each))));
    swish.push_back(each / (1 + std::exp(-each)));
    quick.push_back(each / (1 + std::exp(-1.702 * each)));
  }
  EXPECT_THAT(compute({.operation = "Gelu"}, {input}), Pointwise(DoubleNear(1e-12), gelu));
  EXPECT_THAT(
      compute({.operation = "Gelu", .attributes = {{"approximate", std::string("tanh")}}}, {input}),
      Pointwise(DoubleNear(1e-12), tanh_gelu));
  EXPECT_THAT(compute({.operation = "Mish"}, {input}), Pointwise(DoubleNear(1e-12), mish));
  EXPECT_THAT(compute({.operation = "Swish"}, {input}), Pointwise(DoubleNear(1e-12), swish));
  EXPECT_THAT(compute({.operation = "QuickGelu", .domain = "com.microsoft"}, {input}),
              Pointwise(DoubleNear(1e-12), quick));
  EXPECT_THAT(compute({.operation = "FastGelu", .domain = "com.microsoft"}, {input}),
              Pointwise(DoubleNear(1e-12), tanh_gelu));
  // x - 1 with a bias of 1 is x.
  std::vector<double> before = x;
  for (double& each : before) each -= 1;
  EXPECT_THAT(compute({.operation = "BiasGelu", .domain = "com.microsoft"},
                      {reals({1, 5}, before, ElementType::f64),
                       reals({5}, std::vector<double>(5, 1), ElementType::f64)}),
              Pointwise(DoubleNear(1e-12), gelu));
}

TEST(NewerOperations, GroupNormalizationOfOneGroupIsLayerNormalization) {
  const DenseTensor x = random_tensor(ElementType::f64, {2, 4, 3}, 1);
  const DenseTensor ones = reals({4}, std::vector<double>(4, 1), ElementType::f64);
  const DenseTensor zeros = reals({4}, std::vector<double>(4, 0), ElementType::f64);
  const auto grouped =
      compute({.operation = "GroupNormalization", .attributes = {{"num_groups", std::int64_t{1}}}},
              {x, ones, zeros});
  const auto layered =
      compute({.operation = "LayerNormalization", .attributes = {{"axis", std::int64_t{1}}}},
              {x, reals({}, {1}, ElementType::f64)});
  EXPECT_THAT(grouped, Pointwise(DoubleNear(1e-12), layered));
  // And of as many groups as channels it is instance normalisation.
  const DenseTensor scale = random_tensor(ElementType::f64, {4}, 2);
  const DenseTensor bias = random_tensor(ElementType::f64, {4}, 3);
  const auto channels =
      compute({.operation = "GroupNormalization", .attributes = {{"num_groups", std::int64_t{4}}}},
              {x, scale, bias});
  EXPECT_THAT(channels, Pointwise(DoubleNear(1e-12), compute({.operation = "InstanceNormalization"},
                                                             {x, scale, bias})));
}

TEST(NewerOperations, RootMeanSquareNormalization) {
  const auto y = compute({.operation = "RMSNormalization", .attributes = {{"epsilon", 0.0}}},
                         {reals({1, 2}, {3, 4}), reals({2}, {1, 2})});
  const double root = std::sqrt((9 + 16) / 2.0);
  EXPECT_THAT(y, ElementsAre(DoubleNear(3 / root, 1e-6), DoubleNear(8 / root, 1e-6)));
}

TEST(NewerOperations, SkipLayerNormalizationIsThatOfTheSum) {
  const DenseTensor x = random_tensor(ElementType::f32, {2, 3, 8}, 1);
  const DenseTensor skip = random_tensor(ElementType::f32, {2, 3, 8}, 2);
  const DenseTensor gamma = random_tensor(ElementType::f32, {8}, 3);
  const DenseTensor beta = random_tensor(ElementType::f32, {8}, 4);
  const NodeProgram node{.operation = "SkipLayerNormalization",
                         .domain = "com.microsoft",
                         .attributes = {},
                         .outputs = 4};
  const auto results = node.compute({x, skip, gamma, beta});
  const auto sum = NodeProgram{.operation = "Add"}.compute({x, skip});
  EXPECT_EQ(results[3], sum.front());
  EXPECT_THAT(numbers_of<double>(results[0]),
              Pointwise(DoubleNear(1e-5),
                        compute({.operation = "LayerNormalization"}, {sum.front(), gamma, beta})));
}

/// softmax(Q·Kᵀ/√width)·V of one head by the operations that it is made of.
std::vector<double> composed_attention(const DenseTensor& q, const DenseTensor& k,
                                       const DenseTensor& v, const DenseTensor& mask) {
  const std::vector<std::int64_t> turn{0, 1, 3, 2};
  const auto turned =
      NodeProgram{.operation = "Transpose", .attributes = {{"perm", turn}}}.compute({k});
  const auto product = NodeProgram{.operation = "MatMul"}.compute({q, turned.front()});
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape.back()));
  const auto scaled = NodeProgram{.operation = "Mul"}.compute(
      {product.front(), reals({}, {scale}, ElementType::f64)});
  const auto masked = NodeProgram{.operation = "Add"}.compute({scaled.front(), mask});
  const auto shares = NodeProgram{.operation = "Softmax"}.compute({masked.front()});
  return compute({.operation = "MatMul"}, {shares.front(), v});
}

DenseTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t past) {
  std::vector<double> mask;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) mask.push_back(j > i + past ? -HUGE_VAL : 0);
  }
  return reals({queries, keys}, mask, ElementType::f64);
}

TEST(NewerOperations, AttentionIsMadeOfProductsAndSoftmax) {
  const DenseTensor q = random_tensor(ElementType::f64, {2, 3, 4, 8}, 1);
  const DenseTensor k = random_tensor(ElementType::f64, {2, 3, 6, 8}, 2);
  const DenseTensor v = random_tensor(ElementType::f64, {2, 3, 6, 5}, 3);
  const DenseTensor none = reals({}, {0}, ElementType::f64);
  EXPECT_THAT(compute({.operation = "Attention"}, {q, k, v}),
              Pointwise(DoubleNear(1e-12), composed_attention(q, k, v, none)));
  const DenseTensor mask = random_tensor(ElementType::f64, {4, 6}, 4);
  EXPECT_THAT(compute({.operation = "Attention"}, {q, k, v, mask}),
              Pointwise(DoubleNear(1e-12), composed_attention(q, k, v, mask)));
  EXPECT_THAT(compute({.operation = "Attention", .attributes = {{"is_causal", std::int64_t{1}}}},
                      {q, k, v}),
              Pointwise(DoubleNear(1e-12), composed_attention(q, k, v, causal_mask(4, 6, 0))));
}

TEST(NewerOperations, AttentionOverEarlierKeysIsThatOverAll) {
  const DenseTensor q = random_tensor(ElementType::f64, {1, 2, 3, 4}, 1);
  const DenseTensor past = random_tensor(ElementType::f64, {1, 2, 5, 4}, 2);
  const DenseTensor now = random_tensor(ElementType::f64, {1, 2, 3, 4}, 3);
  const NodeProgram node{.operation = "Attention",
                         .domain = "",
                         .attributes = {{"is_causal", std::int64_t{1}}},
                         .outputs = 3};
  const auto results = node.compute({q, now, now, absent(), past, past});
  const auto all =
      NodeProgram{.operation = "Concat", .attributes = {{"axis", std::int64_t{2}}}}.compute(
          {past, now});
  EXPECT_EQ(results[1], all.front());
  EXPECT_THAT(numbers_of<double>(results[0]),
              Pointwise(DoubleNear(1e-12),
                        composed_attention(q, all.front(), all.front(), causal_mask(3, 8, 5))));
}

/// [samples, heads, length, width] as [samples, length, heads · width].
DenseTensor packed(const DenseTensor& heads) {
  const std::vector<std::int64_t> turn{0, 2, 1, 3};
  const Shape& s = heads.shape;
  return reshaped(
      NodeProgram{.operation = "Transpose", .attributes = {{"perm", turn}}}.compute({heads})[0],
      {s[0], s[2], s[1] * s[3]});
}

TEST(NewerOperations, MultiHeadAttentionPacksHeads) {
  const DenseTensor q = random_tensor(ElementType::f64, {2, 3, 4, 8}, 1);
  const DenseTensor k = random_tensor(ElementType::f64, {2, 3, 6, 8}, 2);
  const DenseTensor v = random_tensor(ElementType::f64, {2, 3, 6, 5}, 3);
  const NodeProgram node{.operation = "MultiHeadAttention",
                         .domain = "com.microsoft",
                         .attributes = {{"num_heads", std::int64_t{3}}}};
  const DenseTensor none = reals({}, {0}, ElementType::f64);
  const DenseTensor expected =
      packed(tensor_of(ElementType::f64, {2, 3, 4, 5}, composed_attention(q, k, v, none)));
  EXPECT_THAT(compute(node, {packed(q), packed(k), packed(v)}),
              Pointwise(DoubleNear(1e-12), numbers_of<double>(expected)));
}

TEST(NewerOperations, RotaryEmbeddingTurnsPairs) {
  // One head of width 4: the pairs are (x0, x2) and (x1, x3), or neighbours.
  const DenseTensor x = reals({1, 1, 1, 4}, {1, 0, 0, 1});
  const DenseTensor cosines = reals({2, 2}, {1, 1, 0, 0});
  const DenseTensor sines = reals({2, 2}, {0, 0, 1, 1});
  const DenseTensor position = wholes({1, 1}, {1});
  EXPECT_THAT(compute({.operation = "RotaryEmbedding"}, {x, cosines, sines, position}),
              ElementsAre(0, -1, 1, 0));
  EXPECT_THAT(
      compute({.operation = "RotaryEmbedding", .attributes = {{"interleaved", std::int64_t{1}}}},
              {x, cosines, sines, position}),
      ElementsAre(0, 1, -1, 0));
  EXPECT_THAT(compute({.operation = "RotaryEmbedding", .domain = "com.microsoft"},
                      {x, position, cosines, sines}),
              ElementsAre(0, -1, 1, 0));
}

TEST(NewerOperations, GroupQueryAttentionSharesKeysAndLooksBack) {
  const DenseTensor q = random_tensor(ElementType::f64, {1, 4, 5, 8}, 1);
  const DenseTensor k = random_tensor(ElementType::f64, {1, 2, 5, 8}, 2);
  const DenseTensor v = random_tensor(ElementType::f64, {1, 2, 5, 8}, 3);
  const std::vector<std::int64_t> twice{0, 0, 1, 1};
  const NodeProgram repeat{.operation = "Gather", .attributes = {{"axis", std::int64_t{1}}}};
  const DenseTensor all_k = repeat.compute({k, wholes({4}, twice)}).front();
  const DenseTensor all_v = repeat.compute({v, wholes({4}, twice)}).front();
  std::vector<Attribute> attributes{{"num_heads", std::int64_t{4}},
                                    {"kv_num_heads", std::int64_t{2}}};
  const std::vector<DenseTensor> inputs{packed(q),
                                        packed(k),
                                        packed(v),
                                        absent(),
                                        absent(),
                                        wholes({1}, {4}, ElementType::i32),
                                        wholes({}, {5}, ElementType::i32)};
  const NodeProgram node{"GroupQueryAttention", "com.microsoft", attributes};
  const auto expected = [&](const DenseTensor& mask) {
    return numbers_of<double>(packed(
        tensor_of(ElementType::f64, {1, 4, 5, 8}, composed_attention(q, all_k, all_v, mask))));
  };
  EXPECT_THAT(compute(node, inputs), Pointwise(DoubleNear(1e-12), expected(causal_mask(5, 5, 0))));
  // A window of 2 keys: a query's own and the one before.
  attributes.push_back({"local_window_size", std::int64_t{2}});
  std::vector<double> mask(25, -HUGE_VAL);
  for (std::size_t i = 0; i < 5; ++i) mask[i * 5 + i] = mask[i * 5 + (i > 0 ? i - 1 : 0)] = 0;
  EXPECT_THAT(compute({"GroupQueryAttention", "com.microsoft", attributes}, inputs),
              Pointwise(DoubleNear(1e-12), expected(reals({5, 5}, mask, ElementType::f64))));
}

TEST(NewerOperations, WhatIsNotSupportedIsSaid) {
  const DenseTensor x = random_tensor(ElementType::f64, {1, 1, 2, 2}, 1);
  const NodeProgram capped{.operation = "Attention", .attributes = {{"softcap", 1.0}}};
  EXPECT_THAT(error_text([&] {
                capped.compute({x, x, x});
              }),
              HasSubstr("node 'it' (Attention): its attribute 'softcap' is not supported"));
  const NodeProgram smooth{.operation = "Resize", .attributes = {{"antialias", std::int64_t{1}}}};
  EXPECT_THAT(error_text([&] {
                smooth.compute({x, absent(), reals({4}, {1, 1, 2, 2})});
              }),
              HasSubstr("'antialias' is not supported"));
}

}  // namespace
}  // namespace braid
