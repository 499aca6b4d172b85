#include "braid/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace braid {
namespace {

std::atomic<int>& threads_setting() {
  static std::atomic<int> threads{
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  return threads;
}

// Loops inside a body run on the thread of that body: the outer loop keeps all threads busy.
thread_local bool inside_parallel_for = false;

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
  std::atomic<std::size_t> next = 0;
  const auto threads = inside_parallel_for ? 1 : static_cast<std::size_t>(thread_count());
  // Several indices at a time, so that short bodies do not wait for the counter; few enough that
  // long ones stay balanced.
  const std::size_t batch = std::max<std::size_t>(1, count / (threads * 32));
  const auto work = [&] {
    const bool before = std::exchange(inside_parallel_for, true);
    for (;;) {
      const std::size_t begin = next.fetch_add(batch);
      if (begin >= count) break;
      for (std::size_t i = begin; i < std::min(begin + batch, count); ++i) {
        try {
          body(i);
        } catch (...) {
          first.note(i, std::current_exception());
        }
      }
    }
    inside_parallel_for = before;
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The system gives no more threads: those that there are do the work.
    }
    work();
  }
  first.rethrow();
}

}  // namespace braid
