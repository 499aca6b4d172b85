#include "braid/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace braid {
namespace {

std::atomic<int>& threads_setting() {
  static std::atomic<int> threads{
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  return threads;
}

// Keeps the exception of the lowest index.
class FirstException {
 public:
  void note(std::size_t index, std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    if (!exception_ || index < index_) {
      index_ = index;
      exception_ = std::move(exception);
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::size_t index_ = 0;
  std::exception_ptr exception_;
};

}  // namespace

int thread_count() { return threads_setting().load(); }

void set_thread_count(int threads) { threads_setting().store(std::clamp(threads, 1, 1024)); }

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  FirstException first;
  const auto guarded = [&](std::size_t i) {
    try {
      body(i);
    } catch (...) {
      first.note(i, std::current_exception());
    }
  };
  const int threads = thread_count();
  if (threads == 1 || count < 2) {
    for (std::size_t i = 0; i < count; ++i) guarded(i);
  } else {
    using oneapi::tbb::global_control;
    const global_control limit(global_control::max_allowed_parallelism,
                               static_cast<std::size_t>(threads));
    oneapi::tbb::task_arena arena(threads);
    arena.execute([&] { oneapi::tbb::parallel_for(std::size_t{0}, count, guarded); });
  }
  first.rethrow();
}

}  // namespace braid
