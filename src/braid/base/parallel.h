#pragma once

#include <cstddef>
#include <functional>

namespace braid {

/// Number of worker threads used by parallel_for; at least 1. Defaults to the number of cores.
int thread_count();
/// Sets it, for the whole process. Results never depend on it.
void set_thread_count(int threads);

/// Calls body(i) for each i in [0, count), on up to thread_count() threads, in no defined order.
/// An exception in a body is rethrown after all bodies have ended: the one of the lowest index.
/// A parallel_for inside a body runs on that body's thread alone. Starting threads costs some tens
/// of microseconds: worth it for loops that take longer than that.
/// Bodies write only to their own slot, so that the outcome does not depend on the thread count.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace braid
