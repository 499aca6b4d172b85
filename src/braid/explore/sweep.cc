#include "braid/explore/sweep.h"

#include <chrono>
#include <mutex>
#include <optional>

#include "braid/base/parallel.h"

namespace braid {

Sweep sweep_space(const Space& space, PointStore* store,
                  const std::function<void(std::size_t done)>& progress) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kCommitEvery{500};
  const std::size_t count = point_count(space);
  Sweep sweep;
  sweep.results.resize(count);
  std::vector<std::size_t> missing;
  missing.reserve(count);
  std::vector<std::optional<PointResult>> known;
  if (store != nullptr) known = store->load();
  for (std::size_t number = 0; number < count; ++number) {
    if (store != nullptr && known[number]) {
      sweep.results[number] = std::move(*known[number]);
      ++sweep.resumed;
    } else {
      missing.push_back(number);
    }
  }
  std::mutex mutex;
  std::size_t done = sweep.resumed;
  Clock::time_point committed = Clock::now();
  parallel_for(missing.size(), [&](std::size_t i) {
    const std::size_t number = missing[i];
    sweep.results[number] = plan_point(space, point_of(space, number));
    const std::lock_guard<std::mutex> lock(mutex);
    if (store != nullptr) {
      store->add(number, sweep.results[number]);
      if (Clock::now() - committed >= kCommitEvery) {
        store->commit();
        committed = Clock::now();
      }
    }
    ++done;
    if (progress) progress(done);
  });
  if (store != nullptr) store->commit();
  return sweep;
}

}  // namespace braid
