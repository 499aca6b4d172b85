#include "braid/schedule/schedule.h"

#include <algorithm>
#include <cassert>

namespace braid {
namespace {

std::vector<PassTask> gpipe_order(int vp, std::int64_t m) {
  std::vector<PassTask> order;
  order.reserve(static_cast<std::size_t>(m) * 2 * static_cast<std::size_t>(vp));
  for (std::int32_t c = 0; c < vp; ++c) {
    for (std::int64_t k = 0; k < m; ++k) order.push_back({TaskKind::forward, c, k});
  }
  for (std::int32_t c = vp - 1; c >= 0; --c) {
    for (std::int64_t k = 0; k < m; ++k) order.push_back({TaskKind::backward, c, k});
  }
  return order;
}

/// `forwards_first` forward passes, then backward and forward passes in turn. The i-th forward pass
/// takes group i / (pp·vp), in it chunk (i mod pp·vp) / pp; the backward passes take the same way
/// with the chunks reversed.
std::vector<PassTask> alternating_order(int pp, int vp, std::int64_t m,
                                        std::int64_t forwards_first) {
  const std::int64_t passes = m * vp;
  const std::int64_t group = std::int64_t{pp} * vp;
  const auto micro_batch = [&](std::int64_t i) { return i / group * pp + i % pp; };
  const auto chunk = [&](std::int64_t i) { return static_cast<std::int32_t>(i % group / pp); };
  std::vector<PassTask> order;
  order.reserve(static_cast<std::size_t>(2 * passes));
  std::int64_t forwards = 0;
  for (std::int64_t b = 0; b < passes; ++b) {
    for (; forwards < std::min(passes, b + forwards_first); ++forwards) {
      order.push_back({TaskKind::forward, chunk(forwards), micro_batch(forwards)});
    }
    order.push_back({TaskKind::backward, vp - 1 - chunk(b), micro_batch(b)});
  }
  return order;
}

}  // namespace

Schedule make_schedule(ScheduleKind kind, int pp, int vp, std::int64_t num_micro_batches) {
  assert(pp >= 1 && vp >= 1 && num_micro_batches >= 1);
  Schedule schedule;
  schedule.order.reserve(static_cast<std::size_t>(pp));
  for (int s = 0; s < pp; ++s) {
    if (kind == ScheduleKind::gpipe) {
      schedule.order.push_back(gpipe_order(vp, num_micro_batches));
    } else if (vp == 1) {
      schedule.order.push_back(alternating_order(1, 1, num_micro_batches, pp - s));
    } else {
      assert(kind == ScheduleKind::interleaved && num_micro_batches % pp == 0);
      const std::int64_t warm_up = std::int64_t{pp - s - 1} * 2 + std::int64_t{vp - 1} * pp;
      schedule.order.push_back(alternating_order(pp, vp, num_micro_batches, warm_up + 1));
    }
  }
  return schedule;
}

Schedule make_graph_schedule(ScheduleKind kind, std::span<const StageRounds> rounds,
                             std::span<const std::int64_t> first) {
  assert(rounds.size() == first.size());
  Schedule schedule;
  schedule.order.reserve(rounds.size());
  for (std::size_t s = 0; s < rounds.size(); ++s) {
    assert(rounds[s].count >= 1 && first[s] >= 1);
    schedule.order.push_back(kind == ScheduleKind::gpipe
                                 ? gpipe_order(1, rounds[s].count)
                                 : alternating_order(1, 1, rounds[s].count, first[s]));
  }
  return schedule;
}

Schedule make_graph_schedule(ScheduleKind kind, std::span<const int> depths,
                             std::int64_t num_micro_batches) {
  assert(num_micro_batches >= 1);
  Schedule schedule;
  schedule.order.reserve(depths.size());
  for (const int depth : depths) {
    assert(depth >= 1);
    schedule.order.push_back(kind == ScheduleKind::gpipe
                                 ? gpipe_order(1, num_micro_batches)
                                 : alternating_order(1, 1, num_micro_batches, depth));
  }
  return schedule;
}

std::vector<PassTask> passes_of(std::span<const PassRun> runs) {
  std::int64_t passes = 0;
  for (const PassRun& run : runs) passes += run.times * (run.forwards + run.backwards);
  std::vector<PassTask> order;
  order.reserve(static_cast<std::size_t>(passes));
  std::int64_t forwards = 0, backwards = 0;
  for (const PassRun& run : runs) {
    for (std::int64_t i = 0; i < run.times; ++i) {
      for (std::int64_t k = 0; k < run.forwards; ++k) {
        order.push_back({TaskKind::forward, 0, forwards++});
      }
      for (std::int64_t k = 0; k < run.backwards; ++k) {
        order.push_back({TaskKind::backward, 0, backwards++});
      }
    }
  }
  return order;
}

}  // namespace braid
