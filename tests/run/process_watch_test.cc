#include "braid/run/process_watch.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::test {
namespace {

TEST(ProcessWatch, PrintsWarningsAndHearsEveryOtherLine) {
  std::vector<std::string> heard;
  testing::internal::CaptureStderr();
  const ProcessEnd end = watch_processes(
      {{{"/bin/sh", "-c", "echo iteration 1; echo warning: slow; echo iteration 2"}, "rank 0"}},
      [&](std::size_t, const std::string& line) { heard.push_back(line); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "braid: warning: slow\n");
  EXPECT_EQ(end.failure, "");
  EXPECT_THAT(heard, testing::ElementsAre("iteration 1", "iteration 2"));
}

}  // namespace
}  // namespace braid::test
