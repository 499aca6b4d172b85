#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "braid/planners/job/space.h"

namespace braid {

/// Which configurations have been met, kept by ranges of vp.
class CoveredRanges {
 public:
  /// Adds the range and calls visit(part) for each part of it that was not there, ascending.
  void add(const ConfigurationRange& range,
           const std::function<void(const ConfigurationRange&)>& visit);

 private:
  /// All fields but vp.
  struct Hash {
    std::size_t operator()(const Configuration& c) const;
  };
  struct Interval {
    std::int32_t first = 0, last = 0;
  };
  /// Of all that follows: nothing of it goes before the end.
  std::pmr::monotonic_buffer_resource arena_;
  /// Of each configuration (vp: 0), apart from each other, ascending.
  std::pmr::unordered_map<Configuration, std::pmr::vector<Interval>, Hash> covered_{&arena_};
};

}  // namespace braid
