#include "braid/explore/sweep.h"

#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/parallel.h"
#include "braid/base/temporary_folder.h"
#include "braid/plan/plan_json.h"
#include "braid/verify/verify.h"

#include "explore/small_space.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

class Threads {
 public:
  explicit Threads(int threads) : before_(thread_count()) { set_thread_count(threads); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

TEST(Sweep, ParallelResultsDoNotDependOnThreads) {
  const Space space = space_from(small_space_text());
  std::vector<std::vector<PointResult>> results;
  for (const int threads : {1, 2, 8}) {
    const Threads set(threads);
    results.push_back(sweep_space(space, nullptr).results);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Sweep, ParallelPlansDoNotDependOnThreads) {
  const Space space = space_from(systems_with("devices: [4, 8]", "devices: 4"));
  std::vector<std::vector<PointResult>> results;
  std::vector<std::string> plans;
  for (const int threads : {1, 8}) {
    const Threads set(threads);
    const TemporaryFolder folder;
    results.push_back(sweep_space(space, nullptr, {}, folder.path()).results);
    std::string all;
    for (std::size_t number = 0; number < results.back().size(); ++number) {
      if (is_found(results.back()[number])) {
        all += read_file(folder / plan_file_name(space, number));
      }
    }
    plans.push_back(std::move(all));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_TRUE(plans[0] == plans[1]);
}

// The plan of every point is there, is what the point says, and comes back when it is lost.
TEST(Sweep, KeepsVerifiedPlans) {
  const TemporaryFolder folder;
  const Space space = space_from(systems_with("devices: [4, 8]", "devices: 4"));
  PointStore store(folder / "points.sqlite", columns_of(space), canonical_text(space),
                   point_count(space));
  const Sweep sweep = sweep_space(space, &store, {}, folder.path());
  std::size_t found = 0;
  for (std::size_t number = 0; number < sweep.results.size(); ++number) {
    const PointResult& result = sweep.results[number];
    if (!is_found(result)) continue;
    const Plan plan = read_plan(folder / plan_file_name(space, number));
    const Verification verification = verify(plan);
    EXPECT_TRUE(verification.holds());
    EXPECT_NEAR(verification.iteration_time_s, result.time_s, 1e-6 * result.time_s);
    ASSERT_TRUE(plan.claims.has_value());
    EXPECT_EQ(plan.claims->iteration_time_s, result.time_s);
    ++found;
  }
  EXPECT_GT(found, 8U);
  const std::string lost = folder / plan_file_name(space, 0);
  const std::string text = read_file(lost);
  std::filesystem::remove(lost);
  const Sweep again = sweep_space(space, &store, {}, folder.path());
  EXPECT_EQ(again.resumed, sweep.results.size() - 1);
  EXPECT_EQ(again.results, sweep.results);
  EXPECT_TRUE(read_file(lost) == text);
}

// Sizes of 1 make a torus of four dimensions one of two: where sizes are searched and all
// dimensions are alike, it is never slower.
TEST(Sweep, FourDimensionsHoldTwo) {
  const std::string from = "[ring, ring], sizes: [4, 2], roles: [tensor, data]";
  const std::string to =
      "[ring, ring, ring, ring], sizes: [2, 2, 1, 2], roles: "
      "[tensor, data, data, pipeline]";
  const Space two = space_from(small_space_text()), four = space_from(with(from, to));
  ASSERT_EQ(dataflow_of(four).topologies[0].shapes.size(), 4U);
  int compared = 0;
  for (std::size_t number = 0; number < point_count(two); ++number) {
    const SpacePoint point = point_of(two, number);
    if (point[0] != 0 || point[4] != 0) continue;
    const PointResult result = plan_point(four, point).result;
    ASSERT_TRUE(is_found(result));
    EXPECT_EQ(result.counts[0] * result.counts[1] * result.counts[2], 8);
    if (point[1] != 1 || point[5] != 0) continue;
    EXPECT_LE(result.time_s, plan_point(two, point).result.time_s * (1 + 1e-9));
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(Sweep, ParallelResumedIsUnresumed) {
  const TemporaryFolder folder;
  const Space space = space_from(small_space_text());
  const std::vector<PointResult> whole = sweep_space(space, nullptr).results;
  {
    PointStore store(folder / "points.sqlite", columns_of(space), canonical_text(space),
                     whole.size());
    for (std::size_t number = 0; number < whole.size(); number += 3) {
      store.add(number, whole[number]);
    }
    store.commit();
    store.add(1, whole[0]);  // Not committed: lost, as in an interruption.
  }
  PointStore store(folder / "points.sqlite", columns_of(space), canonical_text(space),
                   whole.size());
  std::size_t calls = 0;
  const Sweep sweep = sweep_space(space, &store, [&calls](std::size_t) { ++calls; });
  EXPECT_EQ(sweep.resumed, 22U);
  EXPECT_EQ(calls, whole.size() - 22);
  EXPECT_EQ(sweep.results, whole);
  const Sweep again = sweep_space(space, &store);
  EXPECT_EQ(again.resumed, whole.size());
  EXPECT_EQ(again.results, whole);
}

std::string message_of(const std::string& path, const std::string& text, std::size_t points) {
  try {
    const PointStore store(path, ResultColumns{}, text, points);
    store.load();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PointStore, RefusesWhatIsNotItsOwn) {
  const TemporaryFolder folder;
  const std::string path = folder / "points.sqlite";
  { PointStore store(path, ResultColumns{}, "this space", 4); }
  EXPECT_EQ(message_of(path, "this space", 4), "");
  EXPECT_THAT(message_of(path, "another space", 4), HasSubstr("another space"));
  EXPECT_THAT(message_of(folder.path(), "this space", 4), HasSubstr("cannot open"));
  EXPECT_THAT(message_of(folder / "none/points.sqlite", "this space", 4), HasSubstr("cannot open"));
  write_file(folder / "text.sqlite",
             "no database at all, but a text that is long enough for one "
             "to be read as the head of a file of a hundred bytes or so");
  EXPECT_THAT(message_of(folder / "text.sqlite", "this space", 4), HasSubstr("database"));
}

TEST(PointStore, TwoThreadsMayMakeOneAtOnce) {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const std::string path = folder / (std::to_string(round) + ".sqlite");
    std::string first, second;
    std::thread other([&] { first = message_of(path, "space", 4); });
    second = message_of(path, "space", 4);
    other.join();
    EXPECT_EQ(first + second, "") << round;
  }
}

TEST(PointStore, RefusesResultsThatCannotBe) {
  const TemporaryFolder folder;
  const std::string path = folder / "points.sqlite";
  PointResult result;
  result.status = Status::optimal;
  result.time_s = 0.1 + 0.2;
  {
    PointStore store(path, ResultColumns{}, "space", 4);
    store.add(3, result);
    store.commit();
  }
  EXPECT_EQ(message_of(path, "space", 4), "");
  EXPECT_THAT(message_of(path, "space", 3), HasSubstr("point 3"));  // There are points 0 to 2.
  result.time_s = -1;
  {
    PointStore store(path, ResultColumns{}, "space", 4);
    store.add(2, result);
    store.commit();
  }
  EXPECT_THAT(message_of(path, "space", 4), HasSubstr("point 2"));
}

// What a database that was cut short holds is either read or refused.
TEST(PointStore, DamagedFilesAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder / "points.sqlite";
  {
    PointStore store(path, ResultColumns{}, "space", 100);
    for (std::size_t number = 0; number < 100; ++number) store.add(number, {});
    store.commit();
  }
  const std::string whole = read_file(path);
  for (std::size_t length = 100; length < whole.size(); length += 977) {
    const std::string cut = folder / "cut.sqlite";
    write_file(cut, whole.substr(0, length));
    message_of(cut, "space", 100);
  }
  for (std::size_t at = 0; at < whole.size(); at += 499) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x5a);
    const std::string damaged = folder / "damaged.sqlite";
    write_file(damaged, changed);
    message_of(damaged, "space", 100);
  }
}

}  // namespace
}  // namespace braid
