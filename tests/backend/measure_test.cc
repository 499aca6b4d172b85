#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "braid/backend/measure/child_process.h"
#include "braid/backend/measure/cost_store.h"
#include "braid/backend/measure/measurement.h"
#include "braid/base/error.h"
#include "braid/base/temporary_folder.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::DoubleEq;
using testing::HasSubstr;

TEST(Measurements, SummaryOfSamples) {
  // 21 samples: ranks 6 and 16 enclose the median with 97.3 % (Le Boudec 2010, table A.1).
  std::vector<double> samples_s;
  for (int i = 1; i <= 21; ++i) samples_s.push_back(i);
  const Measurement m = summary_of(samples_s, 4);
  EXPECT_EQ(m.median_s, 11);
  EXPECT_EQ(m.low_s, 6);
  EXPECT_EQ(m.high_s, 16);
  EXPECT_THAT(m.variance_s2, DoubleEq(38.5));
  EXPECT_EQ(m.outliers, 0);
  EXPECT_EQ(m.runs_per_sample, 4);
  EXPECT_EQ(summary_of({3, 1, 2, 4}, 1).median_s, 2.5);
  const Measurement single = summary_of({5}, 1);
  EXPECT_EQ(single.median_s, 5);
  EXPECT_EQ(single.low_s, 5);
  EXPECT_EQ(single.variance_s2, 0);
}

TEST(Measurements, WhatRanMeanwhileIsAnOutlier) {
  std::vector<double> samples_s(20, 1.0);
  samples_s[3] = 1.1;
  samples_s[7] = 50;
  const Measurement m = summary_of(samples_s, 1);
  EXPECT_EQ(m.median_s, 1);
  EXPECT_EQ(m.outliers, 2);
  EXPECT_EQ(m.variance_s2, 0);
}

/// Of random samples, the true median lies outside of the bounds in 5 % of the cases at most.
TEST(Measurements, BoundsEncloseTheTrueMedian) {
  std::mt19937_64 random(1);
  int outside = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples_s;
    for (int i = 0; i < 21; ++i) {
      const double share = static_cast<double>(random() >> 11U) * 0x1.0p-53;
      samples_s.push_back(-std::log(1 - share));
    }
    const Measurement m = summary_of(samples_s, 1);
    outside += m.low_s > std::log(2) || m.high_s < std::log(2) ? 1 : 0;
  }
  EXPECT_LT(outside, trials * 5 / 100);
  EXPECT_GT(outside, trials * 1 / 100);
}

TEST(Measurements, TasksTakeTurns) {
  std::string order;
  const std::vector<std::function<void()>> tasks{[&] { order += "a"; }, [&] { order += "b"; }};
  const auto results = measure(tasks, {.warm_up_runs = 2, .samples = 3, .sample_s = 0});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(order, "aaabbbababab");
  EXPECT_EQ(results[0].samples, 3);
  EXPECT_GE(results[1].high_s, results[1].low_s);
}

TEST(Measurements, SlowTasksGetFewerSamples) {
  int runs = 0;
  const std::vector<std::function<void()>> tasks{[&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }};
  const auto result =
      measure(tasks, {.warm_up_runs = 0, .samples = 1000, .sample_s = 0, .most_s = 0.02}).front();
  EXPECT_GE(result.samples, 3);
  EXPECT_LE(result.samples, 10);
  EXPECT_EQ(runs, result.samples + 1);
}

TEST(ChildProcesses, GiveTheirTextOrSayWhatWentWrong) {
  EXPECT_EQ(run_in_child([] { return std::string(100'000, 'x'); }, 10).text.size(), 100'000U);
  int here = 1;
  EXPECT_EQ(run_in_child([&] { return std::to_string(++here); }, 10).text, "2");
  EXPECT_EQ(here, 1);
  EXPECT_EQ(run_in_child([]() -> std::string { throw Error("out of order"); }, 10).problem,
            "out of order");
  EXPECT_EQ(run_in_child(
                []() -> std::string {
                  std::raise(SIGKILL);
                  return "";
                },
                10)
                .problem,
            "crashed (signal 9)");
  EXPECT_EQ(run_in_child([]() -> std::string { std::_Exit(5); }, 10).problem,
            "ended its process (status 5)");
  const auto sleeps = [] {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    return std::string();
  };
  EXPECT_EQ(run_in_child(sleeps, 0.05).problem, "ran for more than 0.05 s");
}

TEST(ChildProcesses, RunAtOnceAndAnswerInTheirOrder) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  char letter = 'b';
  const auto reads = [&] {
    return ::read(ends[0], &letter, 1) == 1 ? std::string(1, letter) : "nothing";
  };
  const auto writes = [&] {
    return ::write(ends[1], "x", 1) == 1 ? std::string("written") : "nothing";
  };
  // The first ends only when the second has run.
  const std::vector<std::function<std::string()>> works = {reads, writes};
  const std::vector<ChildAnswer> answers = run_in_children(works, 10);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].text, "x");
  EXPECT_EQ(answers[1].text, "written");
  ::close(ends[0]);
  ::close(ends[1]);
}

CostKey key_of(const std::string& backend) {
  return {backend, "2.6.3", "conv+relu (blocked)", "opset 13: Conv", 1, "a machine"};
}

TEST(CostStore, GivesBackWhatWasAdded) {
  const TemporaryFolder folder;
  const Measurement measured{0.1, 0.09, 1.0 / 3, 1e-9, 21, 2, 7};
  {
    CostStore store(folder / "costs.sqlite");
    EXPECT_FALSE(store.find(key_of("onednn")));
    store.add(key_of("onednn"), {measured, "", false});
    store.add(key_of("xnnpack"), {Measurement{}, "", false});
    EXPECT_EQ(store.find(key_of("onednn"))->measured, measured);
  }
  CostStore again(folder / "costs.sqlite");
  EXPECT_EQ(again.find(key_of("onednn"))->measured, measured);
  EXPECT_EQ(again.size(), 2);
  again.add(key_of("onednn"), {Measurement{}, "", false});
  EXPECT_EQ(again.find(key_of("onednn"))->measured, Measurement{});
  EXPECT_EQ(again.size(), 2);
}

TEST(CostStore, KnowsWhatIsRefusedOrWrongAndForgetsWhatBroke) {
  const TemporaryFolder folder;
  {
    CostStore store(folder / "costs.sqlite");
    store.add(key_of("refuses"), {std::nullopt, "", false});
    store.add(key_of("is wrong"), {std::nullopt, "differs by 2", false});
    store.add(key_of("hangs"), {std::nullopt, "takes longer than 30 s", true});
    EXPECT_EQ(store.size(), 0);
  }
  CostStore store(folder / "costs.sqlite");
  ASSERT_TRUE(store.find(key_of("refuses")));
  EXPECT_FALSE(store.find(key_of("refuses"))->measured);
  EXPECT_EQ(store.find(key_of("refuses"))->problem, "");
  EXPECT_EQ(store.find(key_of("is wrong"))->problem, "differs by 2");
  EXPECT_FALSE(store.find(key_of("hangs")));
}

TEST(CostStore, EveryPartOfTheKeyCounts) {
  const TemporaryFolder folder;
  CostStore store(folder / "costs.sqlite");
  const CostKey key = key_of("onednn");
  store.add(key, {Measurement{}, "", false});
  std::vector<CostKey> others(6, key);
  others[0].backend += "x";
  others[1].version += "x";
  others[2].pattern += "x";
  others[3].job += "x";
  others[4].threads = 2;
  others[5].machine += "x";
  for (const CostKey& each : others) EXPECT_FALSE(store.find(each));
  EXPECT_TRUE(store.find(key));
}

TEST(CostStore, TwoThreadsMayWriteAtOnce) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name) {
    CostStore store(folder / "costs.sqlite");
    for (int i = 0; i < 50; ++i) {
      store.add(key_of(name + std::to_string(i)), {Measurement{}, "", false});
    }
  };
  std::thread first(write, "a");
  std::thread second(write, "b");
  first.join();
  second.join();
  CostStore store(folder / "costs.sqlite");
  EXPECT_EQ(store.size(), 100);
}

TEST(CostStore, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << "This is a text and no database, as long as it may be.";
  EXPECT_THAT(error_text([&] { CostStore store(folder / "text"); }),
              HasSubstr("file is not a database"));
  EXPECT_THAT(error_text([&] { CostStore store(folder / "nowhere/costs"); }),
              HasSubstr("cannot open the database"));
}

}  // namespace
}  // namespace braid
