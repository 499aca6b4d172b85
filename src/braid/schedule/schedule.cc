#include "braid/schedule/schedule.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/schedule/graph_orders.h"

namespace braid {
namespace {

std::vector<Work> chunk_by_chunk(std::int32_t stage, int vp, std::int64_t m) {
  std::vector<Work> order;
  order.reserve(2 * at(m) * at(vp));
  for (std::int32_t c = 0; c < vp; ++c) {
    for (std::int64_t k = 0; k < m; ++k) order.push_back({WorkKind::forward, stage * vp + c, k});
  }
  for (std::int32_t c = vp - 1; c >= 0; --c) {
    for (std::int64_t k = 0; k < m; ++k) order.push_back({WorkKind::backward, stage * vp + c, k});
  }
  return order;
}

/// The i-th forward pass takes group i / (pp·vp), in it chunk (i mod pp·vp) / pp; the backward
/// passes take the same way with the chunks reversed.
std::vector<Work> interleaved_passes(std::int32_t stage, int pp, int vp, std::int64_t m) {
  const std::int64_t passes = m * vp;
  const std::int64_t group = std::int64_t{pp} * vp;
  const std::int64_t warm_up = std::int64_t{pp - stage - 1} * 2 + std::int64_t{vp - 1} * pp;
  const auto micro_batch = [&](std::int64_t i) { return i / group * pp + i % pp; };
  const auto chunk = [&](std::int64_t i) { return static_cast<std::int32_t>(i % group / pp); };
  std::vector<Work> order;
  order.reserve(2 * at(passes));
  std::int64_t forwards = 0;
  for (std::int64_t b = 0; b < passes; ++b) {
    for (; forwards < std::min(passes, b + warm_up + 1); ++forwards) {
      order.push_back({WorkKind::forward, stage * vp + chunk(forwards), micro_batch(forwards)});
    }
    order.push_back({WorkKind::backward, stage * vp + vp - 1 - chunk(b), micro_batch(b)});
  }
  return order;
}

}  // namespace

WorkOrder make_schedule(ScheduleKind kind, int pp, int vp, std::int64_t num_micro_batches) {
  assert(pp >= 1 && vp >= 1 && num_micro_batches >= 1);
  WorkOrder order;
  order.devices.reserve(at(pp));
  for (std::int32_t s = 0; s < pp; ++s) {
    if (kind == ScheduleKind::gpipe) {
      order.devices.push_back(chunk_by_chunk(s, vp, num_micro_batches));
    } else if (vp == 1) {
      order.devices.push_back(k_f_k_b_passes(s, num_micro_batches, 1, pp - s));
    } else {
      assert(kind == ScheduleKind::interleaved && num_micro_batches % pp == 0);
      order.devices.push_back(interleaved_passes(s, pp, vp, num_micro_batches));
    }
  }
  return order;
}

WorkOrder make_graph_schedule(ScheduleKind kind, std::span<const StageRounds> rounds,
                              std::span<const std::int64_t> first) {
  assert(rounds.size() == first.size());
  WorkOrder order;
  order.devices.reserve(rounds.size());
  for (std::size_t s = 0; s < rounds.size(); ++s) {
    const std::int64_t m = rounds[s].count;
    assert(m >= 1 && first[s] >= 1);
    order.devices.push_back(k_f_k_b_passes(static_cast<std::int32_t>(s), m, 1,
                                           kind == ScheduleKind::gpipe ? m : first[s]));
  }
  return order;
}

WorkOrder make_graph_schedule(ScheduleKind kind, std::span<const int> depths,
                              std::int64_t num_micro_batches) {
  assert(num_micro_batches >= 1);
  WorkOrder order;
  order.devices.reserve(depths.size());
  for (std::size_t s = 0; s < depths.size(); ++s) {
    assert(depths[s] >= 1);
    order.devices.push_back(
        k_f_k_b_passes(static_cast<std::int32_t>(s), num_micro_batches, 1,
                       kind == ScheduleKind::gpipe ? num_micro_batches : depths[s]));
  }
  return order;
}

std::vector<Work> passes_of(std::int32_t stage, std::span<const PassRun> runs) {
  std::int64_t passes = 0;
  for (const PassRun& run : runs) passes += run.times * (run.forwards + run.backwards);
  std::vector<Work> order;
  order.reserve(at(passes));
  std::int64_t forwards = 0, backwards = 0;
  for (const PassRun& run : runs) {
    for (std::int64_t i = 0; i < run.times; ++i) {
      for (std::int64_t k = 0; k < run.forwards; ++k) {
        order.push_back({WorkKind::forward, stage, forwards++});
      }
      for (std::int64_t k = 0; k < run.backwards; ++k) {
        order.push_back({WorkKind::backward, stage, backwards++});
      }
    }
  }
  return order;
}

}  // namespace braid
