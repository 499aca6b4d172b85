#include "braid/schedule/schedule.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "braid/base/error.h"

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

std::vector<int> stage_depths(int stages, std::span<const ChunkEdge> edges) {
  const auto count = static_cast<std::size_t>(stages);
  std::vector<std::vector<std::int32_t>> sources(count);
  std::vector<int> successors(count, 0);
  for (const ChunkEdge& edge : edges) {
    if (edge.source_stage == edge.target_stage) continue;
    sources[static_cast<std::size_t>(edge.target_stage)].push_back(edge.source_stage);
    ++successors[static_cast<std::size_t>(edge.source_stage)];
  }
  std::vector<int> depths(count, 1);
  std::vector<std::size_t> done;
  done.reserve(count);
  for (std::size_t s = 0; s < count; ++s) {
    if (successors[s] == 0) done.push_back(s);
  }
  for (std::size_t next = 0; next < done.size(); ++next) {
    const std::size_t target = done[next];
    for (const std::int32_t source : sources[target]) {
      const auto s = static_cast<std::size_t>(source);
      depths[s] = std::max(depths[s], depths[target] + 1);
      if (--successors[s] == 0) done.push_back(s);
    }
  }
  if (done.size() < count) {
    const auto stuck =
        std::find_if(successors.begin(), successors.end(), [](int waiting) { return waiting > 0; });
    throw Error(
        "stage " + std::to_string(stuck - successors.begin()) + " leads to a circle of stages",
        "cut the layers so that data flows between stages in one direction");
  }
  return depths;
}

}  // namespace braid
