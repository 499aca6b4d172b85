#include "braid/program/numbers.h"

#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/program/random_tensor.h"

namespace braid {
namespace {

using testing::ElementsAre;

TEST(Numbers, EveryHalfIsItself) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const BrainHalf brain{static_cast<std::uint16_t>(bits)};
    const bool is_half_nan = std::isnan(real_of(half));
    const bool is_brain_nan = std::isnan(real_of(brain));
    EXPECT_TRUE(is_half_nan || half_of(real_of(half)).bits == bits) << bits;
    EXPECT_TRUE(is_brain_nan || brain_half_of(real_of(brain)).bits == bits) << bits;
  }
  EXPECT_TRUE(std::isnan(real_of(half_of(std::nan("")))));
  EXPECT_TRUE(std::isnan(real_of(brain_half_of(std::nan("")))));
}

/// Between two neighbours the nearer one is taken, in the middle the one whose last bit is 0.
template <typename HalfType, typename Encode>
void expect_nearest(Encode encode, std::uint16_t infinity) {
  for (std::uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = real_of(HalfType{bits});
    const double high = real_of(HalfType{static_cast<std::uint16_t>(bits + 1)});
    const double middle = (low + high) / 2;
    EXPECT_EQ(encode(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(encode(std::nextafter(middle, 0)).bits, bits);
    EXPECT_EQ(encode(-std::nextafter(middle, HUGE_VAL)).bits, 0x8000 + bits + 1);
  }
}

TEST(Numbers, HalvesAreRoundedToTheNearest) {
  expect_nearest<Half>(half_of, 0x7c00);
  expect_nearest<BrainHalf>(brain_half_of, 0x7f80);
  EXPECT_EQ(half_of(65519.99).bits, 0x7bff);
  EXPECT_EQ(half_of(65520).bits, 0x7c00);
}

TEST(Numbers, RealsBecomeWholeTowardsZeroWithinTheTypesBounds) {
  const std::vector<double> reals{-1.9, 1.9, 300, -300, std::nan(""), HUGE_VAL};
  EXPECT_THAT(numbers_of<std::int64_t>(tensor_of(ElementType::i8, {6}, reals)),
              ElementsAre(-1, 1, 127, -128, 0, 127));
  EXPECT_THAT(numbers_of<std::int64_t>(tensor_of(ElementType::u8, {6}, reals)),
              ElementsAre(0, 1, 255, 0, 0, 255));
  EXPECT_THAT(numbers_of<std::int64_t>(tensor_of(ElementType::boolean, {6}, reals)),
              ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(Numbers, WholeNumbersWrapAround) {
  const std::vector<std::int64_t> wholes{256, -1};
  EXPECT_THAT(numbers_of<std::int64_t>(tensor_of(ElementType::u8, {2}, wholes)),
              ElementsAre(0, 255));
  EXPECT_THAT(numbers_of<std::uint64_t>(tensor_of(ElementType::u64, {2}, wholes)),
              ElementsAre(256U, std::numeric_limits<std::uint64_t>::max()));
}

TEST(Shapes, PlacesTransposeBroadcastAndSlice) {
  EXPECT_THAT(strided_places({{3, 2}}, {{1, 3}}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(broadcast_places({{2, 1}}, {{2, 2, 3}}),
              ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(strided_places({{2}}, {{-2}}, 3), ElementsAre(3, 1));
  EXPECT_THAT(strided_places({}, {}), ElementsAre(0));
  EXPECT_TRUE(strided_places({{2, 0}}, {{0, 1}}).empty());
}

TEST(RandomTensors, HaveTheMeanAndDeviationThatTheySay) {
  const DenseTensor tensor = random_tensor(ElementType::f32, {100, 1000}, 7, 3);
  double sum = 0, squares = 0;
  for (const double each : numbers_of<double>(tensor)) {
    sum += each;
    squares += each * each;
  }
  EXPECT_NEAR(sum / 1e5, 0, 4 * 3 / std::sqrt(1e5));
  EXPECT_NEAR(std::sqrt(squares / 1e5), 3, 0.03);
  EXPECT_EQ(tensor, random_tensor(ElementType::f32, {100, 1000}, 7, 3));
  EXPECT_NE(tensor, random_tensor(ElementType::f32, {100, 1000}, 8, 3));
  const auto bits = numbers_of<std::int64_t>(random_tensor(ElementType::i32, {64}, 1));
  EXPECT_EQ(std::set<std::int64_t>(bits.begin(), bits.end()), (std::set<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace braid
