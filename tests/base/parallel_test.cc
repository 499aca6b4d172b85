#include "braid/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

// Runs each test at this many threads and restores the setting.
class Parallel : public ::testing::TestWithParam<int> {
 public:
  Parallel() : before_(thread_count()) { set_thread_count(GetParam()); }
  ~Parallel() override { set_thread_count(before_); }

 private:
  int before_;
};

TEST_P(Parallel, CallsEachIndexOnce) {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 10000U}) {
    std::vector<std::atomic<int>> calls(count);
    parallel_for(count, [&](std::size_t i) { ++calls[i]; });
    for (const auto& call : calls) EXPECT_EQ(call.load(), 1);
  }
}

TEST_P(Parallel, RethrowsTheExceptionOfTheLowestIndexAfterAllEnded) {
  std::atomic<int> calls = 0;
  try {
    parallel_for(1000, [&](std::size_t i) {
      ++calls;
      if (i % 100 == 37) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "37");
  }
  EXPECT_EQ(calls.load(), 1000);
}

TEST_P(Parallel, Nests) {
  std::vector<std::vector<std::size_t>> sums(16, std::vector<std::size_t>(64));
  parallel_for(
      16, [&](std::size_t i) { parallel_for(64, [&](std::size_t j) { sums[i][j] = i * j; }); });
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 64; ++j) EXPECT_EQ(sums[i][j], i * j);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 8));

TEST(ThreadCount, IsAtLeastOne) {
  const int before = thread_count();
  EXPECT_GE(before, 1);
  set_thread_count(0);
  EXPECT_EQ(thread_count(), 1);
  set_thread_count(-5);
  EXPECT_EQ(thread_count(), 1);
  set_thread_count(3);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(before);
}

}  // namespace
}  // namespace braid
