#include "braid/base/error.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Error, IsOneLineOfWhatIsKnown) {
  EXPECT_STREQ(Error(Where{"f.json", 3, "a.b"}, "is bad", "mend it").what(),
               "f.json:3: a.b: is bad; mend it");
  EXPECT_STREQ(Error(Where{"f.json", 0, ""}, "is bad").what(), "f.json: is bad");
  EXPECT_STREQ(Error("is bad").what(), "is bad");
  EXPECT_STREQ(Error(Where{"f", 1, "a\nb"}, "x\ty\x1b[0m").what(), "f:1: a b: x y [0m");
}

}  // namespace
}  // namespace braid
