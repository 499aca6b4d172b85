#include "braid/schedule/schedule.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {
namespace {

/// "F1 F2 B1 …", micro-batches counted from 1 as in the papers' figures; of several chunks the
/// stage's number of each after a dot.
std::string text_of(const std::vector<Work>& works, int vp) {
  std::string text;
  for (const Work& work : works) {
    if (!text.empty()) text += ' ';
    text += work.kind == WorkKind::forward ? 'F' : 'B';
    text += std::to_string(work.index + 1);
    if (vp > 1) text += '.' + std::to_string(work.stage % vp);
  }
  return text;
}

std::int64_t peak_in_flight(const std::vector<Work>& works) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Work& work : works) {
    now += work.kind == WorkKind::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

TEST(MakeSchedule, OneForwardOneBackwardAsInTheFigure) {
  // Narayanan et al. 2021, Figure 4 (top): four devices, eight micro-batches.
  const WorkOrder order = make_schedule(ScheduleKind::one_f_one_b, 4, 1, 8);
  EXPECT_EQ(text_of(order.devices[0], 1), "F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8");
  EXPECT_EQ(text_of(order.devices[2], 1), "F1 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 F8 B7 B8");
  EXPECT_EQ(text_of(order.devices[3], 1), "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8");
}

TEST(MakeSchedule, InterleavedAsInTheFigure) {
  // Narayanan et al. 2021, Figure 4 (bottom): four devices, two chunks, eight micro-batches.
  const WorkOrder order = make_schedule(ScheduleKind::interleaved, 4, 2, 8);
  EXPECT_EQ(text_of(order.devices[0], 2),
            "F1.0 F2.0 F3.0 F4.0 F1.1 F2.1 F3.1 F4.1 F5.0 F6.0 F7.0 B1.1 F8.0 B2.1 F5.1 B3.1 F6.1 "
            "B4.1 F7.1 B1.0 F8.1 B2.0 B3.0 B4.0 B5.1 B6.1 B7.1 B8.1 B5.0 B6.0 B7.0 B8.0");
  EXPECT_EQ(text_of(order.devices[3], 2),
            "F1.0 F2.0 F3.0 F4.0 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 F4.1 B4.1 F5.0 B1.0 F6.0 B2.0 F7.0 "
            "B3.0 F8.0 B4.0 F5.1 B5.1 F6.1 B6.1 F7.1 B7.1 F8.1 B8.1 B5.0 B6.0 B7.0 B8.0");
}

TEST(MakeSchedule, GPipeRunsAllForwardPassesFirst) {
  const WorkOrder order = make_schedule(ScheduleKind::gpipe, 2, 2, 2);
  EXPECT_EQ(text_of(order.devices[0], 2), "F1.0 F2.0 F1.1 F2.1 B1.1 B2.1 B1.0 B2.0");
  EXPECT_EQ(text_of(order.devices[1], 2), text_of(order.devices[0], 2));
}

TEST(MakeSchedule, EveryPassOnceAndForwardBeforeBackward) {
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (int pp = 1; pp <= 6; ++pp) {
      for (int vp = 1; vp <= (kind == ScheduleKind::one_f_one_b ? 1 : 4); ++vp) {
        for (std::int64_t m = 1; m <= 13; ++m) {
          if (kind == ScheduleKind::interleaved && vp > 1 && m % pp != 0) continue;
          const WorkOrder order = make_schedule(kind, pp, vp, m);
          ASSERT_EQ(order.devices.size(), static_cast<std::size_t>(pp));
          for (std::int32_t s = 0; s < pp; ++s) {
            const std::vector<Work>& works = order.devices[static_cast<std::size_t>(s)];
            ASSERT_EQ(works.size(), static_cast<std::size_t>(m) * 2 * static_cast<std::size_t>(vp));
            std::set<std::tuple<int, std::int64_t>> forward;
            std::set<std::tuple<int, std::int64_t>> backward;
            for (const Work& work : works) {
              ASSERT_TRUE(work.stage >= s * vp && work.stage < (s + 1) * vp);
              ASSERT_TRUE(work.index >= 0 && work.index < m);
              const std::tuple key{work.stage, work.index};
              if (work.kind == WorkKind::forward) {
                EXPECT_TRUE(forward.insert(key).second);
              } else {
                ASSERT_EQ(work.kind, WorkKind::backward);
                EXPECT_TRUE(forward.contains(key));
                EXPECT_TRUE(backward.insert(key).second);
              }
            }
          }
        }
      }
    }
  }
}

TEST(MakeSchedule, HoldsAsManyChunksInFlightAsTheMemoryModelSays) {
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (int pp = 1; pp <= 9; ++pp) {
      for (int vp = 1; vp <= (kind == ScheduleKind::one_f_one_b ? 1 : 5); ++vp) {
        for (std::int64_t m = 1; m <= 40; ++m) {
          if (kind == ScheduleKind::interleaved && vp > 1 && m % pp != 0) continue;
          const WorkOrder order = make_schedule(kind, pp, vp, m);
          for (int s = 0; s < pp; ++s) {
            EXPECT_EQ(peak_in_flight(order.devices[static_cast<std::size_t>(s)]),
                      in_flight_chunks(kind, pp, s, vp, m))
                << pp << " stages, " << vp << " chunks, " << m << " micro-batches, stage " << s;
          }
        }
      }
    }
  }
}

TEST(StageDepths, LongestPathToASink) {
  // 0 → 1 → 3 → 4 and 0 → 2 → 4: a branch that is shorter.
  const std::vector<ChunkEdge> edges = {
      {0, 0, 1, 0, 0}, {1, 0, 3, 0, 0}, {3, 0, 4, 0, 0}, {0, 0, 2, 0, 0}, {2, 0, 4, 0, 0}};
  EXPECT_EQ(stage_depths(5, edges), (std::vector<int>{4, 3, 2, 2, 1}));
  EXPECT_EQ(stage_depths(3, {}), (std::vector<int>{1, 1, 1}));
  const WorkOrder order = make_graph_schedule(ScheduleKind::one_f_one_b, stage_depths(5, edges), 3);
  EXPECT_EQ(text_of(order.devices[0], 1), "F1 F2 F3 B1 B2 B3");
  EXPECT_EQ(text_of(order.devices[2], 1), "F1 F2 B1 F3 B2 B3");
  EXPECT_EQ(text_of(order.devices[4], 1), "F1 B1 F2 B2 F3 B3");
}

TEST(StageDepths, NamesAStageOfACircle) {
  const std::vector<ChunkEdge> edges = {{0, 0, 1, 0, 0}, {1, 0, 2, 0, 0}, {2, 0, 1, 0, 0}};
  try {
    stage_depths(3, edges);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("stage 1"));
  }
}

}  // namespace
}  // namespace braid
