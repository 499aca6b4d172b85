#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "braid/plan/stage_load.h"

#include "system/network_level.h"

namespace braid {
namespace {

using test::level;

/// Nodes with one card of 1 GB/s.
System nodes_of(std::int64_t nodes, std::int64_t devices) {
  System system;
  system.groups.resize(1);
  system.groups[0].nodes = nodes;
  system.groups[0].devices_per_node = devices;
  system.groups[0].intra_node = level(Topology::switched, devices, 1e10, 1e10, 0);
  system.levels = {level(Topology::switched, nodes, 1e9, 1e9, 0)};
  system.device_count = nodes * devices;
  return system;
}

Parallelism pipeline(int pp, int dp, ScheduleKind schedule = ScheduleKind::one_f_one_b) {
  Parallelism parallel;
  parallel.pp = pp;
  parallel.dp = dp;
  parallel.num_micro_batches = pp;
  parallel.schedule = schedule;
  if (schedule == ScheduleKind::interleaved) parallel.vp = 2;
  return parallel;
}

double passes_s(const Parallelism& parallel, const System& system, int source, int target,
                double bytes) {
  return transfer_time_s(parallel, system, source, target, bytes, stages_sending(parallel, system));
}

TEST(PassTransfer, StagesOfOneNodeShareItsCard) {
  const System system = nodes_of(4, 4);
  const Parallelism parallel = pipeline(8, 2);
  EXPECT_EQ(stages_sending(parallel, system), 2);
  // Between the nodes of stages 1 and 2; within a node nothing is shared.
  EXPECT_DOUBLE_EQ(transfer_time_s(parallel, system, 1, 2, 1e6), 2e-3);
  EXPECT_DOUBLE_EQ(passes_s(parallel, system, 1, 2, 1e6), 4e-3);
  EXPECT_DOUBLE_EQ(passes_s(parallel, system, 2, 1, 1e6), 4e-3);
  EXPECT_DOUBLE_EQ(passes_s(parallel, system, 2, 3, 1e6), 1e-4);
  // A card for each device.
  System railed = system;
  railed.levels[0].unit_bytes_per_s = 4e9;
  railed.levels[0].rails = 4;
  EXPECT_DOUBLE_EQ(passes_s(parallel, railed, 1, 2, 1e6), 1e-3);
}

TEST(PassTransfer, DependsOnWhatLiesOnANode) {
  EXPECT_EQ(stages_sending(pipeline(4, 4), nodes_of(4, 4)), 1);   // A stage a node.
  EXPECT_EQ(stages_sending(pipeline(2, 8), nodes_of(4, 4)), 1);   // Half a stage.
  EXPECT_EQ(stages_sending(pipeline(16, 1), nodes_of(4, 4)), 2);  // Four.
  EXPECT_EQ(stages_sending(pipeline(12, 1), nodes_of(4, 3)), 1);  // Three.
  EXPECT_EQ(stages_sending(pipeline(4, 2), nodes_of(2, 4)), 1);   // Both nodes are ends.
  EXPECT_EQ(stages_sending(pipeline(8, 2, ScheduleKind::gpipe), nodes_of(4, 4)), 1);
  EXPECT_EQ(stages_sending(pipeline(4, 2, ScheduleKind::interleaved), nodes_of(2, 4)), 2);
  EXPECT_EQ(stages_sending(pipeline(4, 1, ScheduleKind::interleaved), nodes_of(1, 4)), 1);
  EXPECT_EQ(stages_sending(pipeline(4, 3), nodes_of(3, 4)), 1);  // Stages over nodes' edges.
}

/// Seconds at which the stages of a 1F1B pipeline of passes of a second end them, pass after pass.
struct PassEnds {
  std::vector<std::map<std::int64_t, std::int64_t>> forward_s, backward_s;  ///< [stage], by number.
};

PassEnds pass_ends(std::int64_t pp, std::int64_t micro_batches) {
  PassEnds ends;
  ends.forward_s.resize(static_cast<std::size_t>(pp));
  ends.backward_s.resize(static_cast<std::size_t>(pp));
  std::int64_t left = 2 * pp * micro_batches;
  for (std::int64_t now_s = 0; left > 0; ++now_s) {
    for (std::int64_t s = 0; s < pp; ++s) {
      const auto at = static_cast<std::size_t>(s);
      auto& forward = ends.forward_s[at];
      auto& backward = ends.backward_s[at];
      const auto done = std::ssize(forward), back = std::ssize(backward);
      // Backward passes come first once as many micro-batches are held as the stage is deep.
      const bool turns_back = done - back == std::min(pp - s, micro_batches - back);
      const auto ended = [&](const std::map<std::int64_t, std::int64_t>& passes, std::int64_t k) {
        const auto found = passes.find(k);
        return found != passes.end() && found->second <= now_s;
      };
      if (turns_back && back < micro_batches) {
        if (s + 1 < pp && !ended(ends.backward_s[at + 1], back)) continue;
        if (!ended(forward, back)) continue;
        backward[back] = now_s + 1;
        --left;
      } else if (done < micro_batches) {
        if (s > 0 && !ended(ends.forward_s[at - 1], done)) continue;
        forward[done] = now_s + 1;
        --left;
      }
    }
  }
  return ends;
}

/// The rule against a pipeline run second by second: while it is full, a stage's activations leave
/// together with the gradients of every stage an odd number away, and never with one an even number
/// away.
TEST(PassTransfer, StagesAnOddNumberApartSendOppositeWaysAtOnce) {
  constexpr std::int64_t kStages = 8, kMicroBatches = 40;
  const PassEnds ends = pass_ends(kStages, kMicroBatches);
  const auto within = [&](const std::map<std::int64_t, std::int64_t>& passes) {
    std::set<std::int64_t> times_s;
    for (const auto& [number, end_s] : passes) {
      if (end_s > 2 * kStages && end_s < 2 * kMicroBatches - kStages) times_s.insert(end_s);
    }
    return times_s;
  };
  for (std::size_t a = 0; a < kStages; ++a) {
    for (std::size_t b = a; b < kStages; ++b) {
      const std::set<std::int64_t> forward_s = within(ends.forward_s[b]);
      const std::set<std::int64_t> backward_s = within(ends.backward_s[a]);
      ASSERT_GT(forward_s.size(), 20U);
      std::vector<std::int64_t> both_s;
      std::set_intersection(forward_s.begin(), forward_s.end(), backward_s.begin(),
                            backward_s.end(), std::back_inserter(both_s));
      if ((b - a) % 2 == 1) {
        EXPECT_EQ(forward_s, backward_s) << a << " " << b;
      } else {
        EXPECT_TRUE(both_s.empty()) << a << " " << b;
      }
    }
  }
}

}  // namespace
}  // namespace braid
