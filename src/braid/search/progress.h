#pragma once

#include <cstdint>
#include <functional>

namespace braid {

/// Called now and then during long searches: what the best so far has of what is to be least
/// (infinity: nothing is found yet), what nothing has less of, and the work done.
using Progress = std::function<void(double best, double bound, std::int64_t work)>;

}  // namespace braid
