#include "braid/schedule/sync_events.h"

#include <algorithm>
#include <tuple>

namespace braid {

void append_sync_events(const StageSync& sync, std::int32_t stage, const StageEnd& end,
                        std::vector<Event>& events) {
  const double last_start_s = end.passes_end_s - end.backward_s;
  const double synced_s = end.passes_end_s + exposed_gradient_sync_s(sync, end.backward_s);
  if (sync.gradient_sync_s > 0) {
    // Buckets of earlier chunks are drawn without gaps, up to where they end.
    const int earlier = sync.earlier_buckets;
    const double earlier_s = earlier > 0 ? sync.earlier_gradient_sync_s / earlier : 0;
    double free_s = earlier > 0 ? last_start_s + sync.earlier_late_s : 0;
    for (int i = 0; i < earlier; ++i) {
      const double start_s = free_s - (earlier - i) * earlier_s;
      events.push_back({start_s, start_s + earlier_s, EventKind::gradient_sync, stage, 0, -1, i});
    }
    const double n = sync.buckets - earlier;
    const double bucket_s = (sync.gradient_sync_s - sync.earlier_gradient_sync_s) / n;
    for (int i = earlier; i < sync.buckets; ++i) {
      const double ready_s = last_start_s + end.backward_s * (i - earlier + 1) / n;
      const double start_s = std::min(std::max(free_s, ready_s), synced_s);
      free_s = i + 1 == sync.buckets ? synced_s : std::min(start_s + bucket_s, synced_s);
      events.push_back({start_s, free_s, EventKind::gradient_sync, stage, 0, -1, i});
    }
  }
  const double shared_s = std::min(synced_s + sync.shared_gradient_sync_s, end.end_s);
  if (sync.shared_gradient_sync_s > 0) {
    events.push_back({synced_s, shared_s, EventKind::shared_gradient_sync, stage, 0, -1, 0});
  }
  if (sync.optimizer_s > 0) {
    events.push_back({shared_s, end.end_s, EventKind::optimizer, stage, 0, -1, 0});
  }
}

void sort_events(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.start_s, a.stage, a.end_s) < std::tie(b.start_s, b.stage, b.end_s);
  });
}

}  // namespace braid
