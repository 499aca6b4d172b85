#include "braid/base/dtype.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Dtype, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(Dtype::boolean); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype) << name_of(dtype);
    EXPECT_GT(bits_per_element(dtype), 0);
  }
}

TEST(Dtype, SizesInMemory) {
  EXPECT_EQ(bytes_per_element(Dtype::f64), 8);
  EXPECT_EQ(bytes_per_element(Dtype::tf32), 4);
  EXPECT_EQ(bytes_per_element(Dtype::bf16), 2);
  EXPECT_EQ(bytes_per_element(Dtype::f4), 0.5);
  EXPECT_EQ(bytes_per_element(Dtype::boolean), 1);
}

TEST(Dtype, AcceptsTheNamesOfTheField) {
  EXPECT_EQ(parse_dtype("float16"), Dtype::f16);
  EXPECT_EQ(parse_dtype("FP16"), Dtype::f16);
  EXPECT_EQ(parse_dtype("half"), Dtype::f16);
  EXPECT_EQ(parse_dtype("torch.bfloat16"), Dtype::bf16);
  EXPECT_EQ(parse_dtype("float8_e4m3fn"), Dtype::f8);
  EXPECT_EQ(parse_dtype("int8"), Dtype::i8);
  EXPECT_EQ(parse_dtype("TF32"), Dtype::tf32);
}

TEST(Dtype, UnknownNamesAreNone) {
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_dtype("float17"), std::nullopt);
  EXPECT_EQ(parse_dtype("bf16 "), std::nullopt);
}

}  // namespace
}  // namespace braid
