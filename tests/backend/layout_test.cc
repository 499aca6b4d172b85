#include "braid/backend/kernel/layout.h"

#include <gtest/gtest.h>

#include "braid/program/random_tensor.h"

namespace braid {
namespace {

/// Where a number lies, by the layout's definition.
std::int64_t place_of(ImageLayout layout, const Shape& s, std::int64_t n, std::int64_t c,
                      std::int64_t p) {
  const std::int64_t positions = s[2] * s[3];
  const std::int64_t b = channel_block();
  if (layout == ImageLayout::plain) return (n * s[1] + c) * positions + p;
  if (layout == ImageLayout::channels_last) return (n * positions + p) * s[1] + c;
  return ((n * (s[1] / b) + c / b) * positions + p) * b + c % b;
}

TEST(Layouts, NumbersLieWhereTheySay) {
  for (const Shape& shape : {Shape{2, 48, 5, 7}, Shape{1, 16, 1, 1}, Shape{3, 32, 20, 3}}) {
    const DenseTensor tensor = random_tensor(ElementType::f32, shape, 3);
    for (const ImageLayout from : all_layouts) {
      for (const ImageLayout to : all_layouts) {
        DenseTensor turned(ElementType::f32, shape);
        turn_layout(tensor, from, turned, to);
        for (std::int64_t n = 0; n < shape[0]; ++n) {
          for (std::int64_t c = 0; c < shape[1]; ++c) {
            for (std::int64_t p = 0; p < shape[2] * shape[3]; ++p) {
              ASSERT_EQ(
                  turned.as<float>()[static_cast<std::size_t>(place_of(to, shape, n, c, p))],
                  tensor.as<float>()[static_cast<std::size_t>(place_of(from, shape, n, c, p))]);
            }
          }
        }
      }
    }
  }
}

TEST(Layouts, OnlyImagesOfWholeGroupsAreBlocked) {
  const TensorForm image{ElementType::f32, {1, channel_block(), 2, 2}};
  EXPECT_TRUE(can_lie(image, ImageLayout::blocked));
  EXPECT_FALSE(can_lie({ElementType::f32, {1, channel_block() + 1, 2, 2}}, ImageLayout::blocked));
  EXPECT_TRUE(can_lie({ElementType::f32, {1, 3, 2, 2}}, ImageLayout::channels_last));
  EXPECT_FALSE(can_lie({ElementType::f32, {1, 3, 4}}, ImageLayout::channels_last));
  EXPECT_FALSE(can_lie({ElementType::i64, {1, 3, 2, 2}}, ImageLayout::channels_last));
  EXPECT_TRUE(can_lie({ElementType::i64, {3}}, ImageLayout::plain));
}

}  // namespace
}  // namespace braid
