#include "braid/explore/sweep.h"

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/parallel.h"
#include "braid/plan/plan_json.h"

namespace braid {
namespace {

/// Writes a point's plan, if it has one and plans are kept.
PointResult kept(const Space& space, std::size_t number, PlannedPoint planned,
                 const std::string& plans) {
  if (planned.plan && !plans.empty()) {
    write_file(plans + "/" + plan_file_name(space, number), to_text(to_json(*planned.plan)));
  }
  return std::move(planned.result);
}

bool lacks_plan(const Space& space, std::size_t number, const PointResult& result,
                const std::string& plans) {
  if (plans.empty() || !is_found(result)) return false;
  std::error_code ignored;
  return !std::filesystem::exists(plans + "/" + plan_file_name(space, number), ignored);
}

}  // namespace

std::string plan_file_name(const Space& space, std::size_t number) {
  constexpr std::size_t kLongest = 200;  // File systems take 255 bytes.
  const std::string name = point_name(space, number, "-").substr(0, kLongest);
  return std::to_string(number) + (name.empty() ? "" : "-") + name + ".json";
}

Sweep sweep_space(const Space& space, PointStore* store,
                  const std::function<void(std::size_t done)>& progress, const std::string& plans) {
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
    if (store != nullptr && known[number] && !lacks_plan(space, number, *known[number], plans)) {
      sweep.results[number] = std::move(*known[number]);
      ++sweep.resumed;
    } else {
      missing.push_back(number);
    }
  }
  std::mutex mutex;
  std::size_t done = sweep.resumed;
  Clock::time_point committed = Clock::now();
  const auto nests = std::make_shared<NestMemo>();
  const auto plan_one = [&](std::size_t i) {
    const std::size_t number = missing[i];
    sweep.results[number] =
        kept(space, number, plan_point(space, point_of(space, number), nests), plans);
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
  };
  // Planners use all threads themselves where there is but one point.
  if (missing.size() == 1) {
    plan_one(0);
  } else {
    parallel_for(missing.size(), plan_one);
  }
  if (store != nullptr) store->commit();
  return sweep;
}

}  // namespace braid
