#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

/// Hash of a few numbers, for keys of unordered maps: Fibonacci hashing (Knuth, TAOCP 3, §6.4) of
/// each in turn.
class HashMix {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29U;
  }
  /// Two at once.
  void add(std::int32_t high, std::int32_t low) {
    add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32U |
        static_cast<std::uint32_t>(low));
  }
  std::size_t value() const { return static_cast<std::size_t>(hash_); }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace braid
