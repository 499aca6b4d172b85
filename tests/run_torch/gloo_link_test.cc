#include "braid/run/torch/gloo_link.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/index.h"
#include "braid/base/temporary_folder.h"

#include "support/torch_row.h"

namespace braid::test {
namespace {

using Row = std::vector<double>;

/// Runs on so many ranks, a thread each, that are all in group 0.
void on_ranks(std::int32_t ranks, const std::function<void(std::int32_t, RankLink&)>& function) {
  const TemporaryFolder folder;
  std::vector<std::vector<std::int32_t>> groups(1, std::vector<std::int32_t>(at(ranks)));
  std::iota(groups.front().begin(), groups.front().end(), 0);
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto link = gloo_link({folder / "meeting", "", 0}, rank, ranks, groups, 60);
      function(rank, *link);
      link->sum_of_all(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Whole numbers, whose sums are exact, that differ from rank to rank and place to place.
Row row_of(std::int32_t rank, std::size_t length) {
  Row row(length);
  for (std::size_t i = 0; i < length; ++i) row[i] = static_cast<double>(i % 1000 * at(rank + 1));
  return row;
}

Row sum_of_rows(std::int32_t ranks, std::size_t length) {
  Row sum(length, 0);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const Row row = row_of(rank, length);
    for (std::size_t i = 0; i < length; ++i) sum[i] += row[i];
  }
  return sum;
}

Row slice_of(const Row& row, std::size_t first, std::size_t count) {
  const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// Rows of fewer numbers than ranks, of numbers that ranks do not divide, and of so many that they
/// do not go by a ring of braid's.
TEST(GlooLink, SumsRowsOfAnyLength) {
  for (const std::int32_t ranks : {2, 3, 4}) {
    on_ranks(ranks, [&](std::int32_t rank, RankLink& link) {
      for (const std::size_t length : {1, 2, 5, 1000, 5'000'003}) {
        const Row sum = numbers_of(link.sum(0, torch_row(row_of(rank, length))));
        EXPECT_TRUE(sum == sum_of_rows(ranks, length)) << ranks << " ranks, " << length;
      }
    });
  }
}

/// The row itself stays as it was. Parts of one round, and of two.
TEST(GlooLink, SumsAndGathersTheParts) {
  for (const std::int32_t ranks : {2, 3}) {
    on_ranks(ranks, [&](std::int32_t rank, RankLink& link) {
      for (const std::size_t part : {1, 7, 600'000}) {
        const Row own = row_of(rank, part * at(ranks)), all = sum_of_rows(ranks, own.size());
        const TensorHandle row = torch_row(own);
        const TensorHandle sum = link.sum_part(0, row);
        EXPECT_TRUE(numbers_of(sum) == slice_of(all, part * at(rank), part)) << part;
        EXPECT_TRUE(numbers_of(row) == own) << part;
        EXPECT_TRUE(numbers_of(link.gather(0, sum, nullptr)) == all) << part;
      }
    });
  }
}

/// What is not exact is the same on all ranks, to the last bit.
TEST(GlooLink, GivesAllRanksTheSameSum) {
  constexpr std::int32_t kRanks = 4;
  std::vector<Row> sums(at(kRanks));
  on_ranks(kRanks, [&](std::int32_t rank, RankLink& link) {
    Row row = row_of(rank, 10'000);
    for (double& number : row) number /= 7 + rank;
    sums[at(rank)] = numbers_of(link.sum(0, torch_row(row)));
  });
  for (const Row& sum : sums) EXPECT_TRUE(sum == sums.front());
}

}  // namespace
}  // namespace braid::test
