#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "braid/chip/systolic/nest_mapper.h"

namespace braid {

/// Mappings by nest, array, cores and buffers, so that a sweep of architectures maps each once.
/// Any thread may ask; a mapping is the same whoever found it. Shapes of arrays that differ in what
/// a nest does not see count as different.
class NestMemo {
 public:
  /// map_nest() of the arguments. Costs about 0.1 us where it is known.
  MappedNest map(const LoopNest& nest, const SystolicMachine& machine);
  std::size_t size() const;

 private:
  struct Key {
    LoopNest nest;
    SystolicMachine machine;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<Key, MappedNest, KeyHash> mapped;
  };
  static constexpr std::size_t kShards = 16;
  std::array<Shard, kShards> shards_;
};

}  // namespace braid
