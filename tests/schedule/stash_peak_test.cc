#include "braid/plan/stash_peak.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/index.h"
#include "braid/schedule/schedule.h"

#include "base/pick.h"

namespace braid {
namespace {

/// What a device holds pass after pass, counted one by one.
StashPeak counted_peak(const std::vector<Work>& order, std::span<const ChunkStash> chunks) {
  StashPeak now, peak;
  std::int64_t held = 0;
  double slot_bytes = 0;
  for (const ChunkStash& chunk : chunks) slot_bytes = std::max(slot_bytes, chunk.offloaded_bytes);
  for (const Work& work : order) {
    const int sign = work.kind == WorkKind::forward ? 1 : -1;
    held += sign;
    now.kept_bytes += sign * chunks[at(work.stage) % chunks.size()].kept_bytes;
    now.offloaded_bytes += sign * chunks[at(work.stage) % chunks.size()].offloaded_bytes;
    const double slots = static_cast<double>(std::min<std::int64_t>(held, 2)) * slot_bytes;
    if (now.kept_bytes + slots > peak.device_bytes()) {
      peak.kept_bytes = now.kept_bytes;
      peak.slot_bytes = slots;
    }
    peak.offloaded_bytes = std::max(peak.offloaded_bytes, now.offloaded_bytes);
  }
  return peak;
}

// Whole bytes, so that sums are exact in any order.
TEST(StashPeak, IsWhatCountingPassByPassFinds) {
  std::mt19937_64 random(40);
  int interleaved = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const auto schedule = static_cast<ScheduleKind>(trial % 3);
    const int pp = test::pick(random, 1, 7);
    const int vp = schedule == ScheduleKind::one_f_one_b ? 1 : test::pick(random, 1, 6);
    const std::int64_t m = schedule == ScheduleKind::interleaved ? pp * test::pick(random, 1, 6)
                                                                 : test::pick(random, 1, 20);
    if (schedule == ScheduleKind::interleaved && vp > 1 && pp == 1) continue;
    std::vector<ChunkStash> chunks;
    std::vector<StashRun> runs;
    const int most = trial % 5 == 0 ? 1 : 1000;  // Of few sizes: chunks in a row that are alike.
    for (int c = 0; c < vp; ++c) {
      const int offloaded = trial % 2 == 0 ? 0 : test::pick(random, 0, most);
      chunks.push_back(
          {static_cast<double>(test::pick(random, 0, most)), static_cast<double>(offloaded)});
      add_chunk(chunks.back(), runs);
    }
    const WorkOrder orders = make_schedule(schedule, pp, vp, m);
    for (int s = 0; s < pp; ++s) {
      const StashPeak counted = counted_peak(orders.devices[at(s)], chunks);
      const StashPeak found = stash_peak(schedule, pp, s, m, runs);
      ASSERT_EQ(found.device_bytes(), counted.device_bytes())
          << "trial " << trial << " stage " << s;
      ASSERT_EQ(found.offloaded_bytes, counted.offloaded_bytes) << "trial " << trial;
      if (vp == 1 || schedule == ScheduleKind::gpipe || m < 3 * pp) continue;
      // More micro-batches change nothing.
      ASSERT_EQ(found, stash_peak(schedule, pp, s, m + 5 * pp, runs)) << "trial " << trial;
      ++interleaved;
    }
  }
  EXPECT_GT(interleaved, 500);
}

}  // namespace
}  // namespace braid
