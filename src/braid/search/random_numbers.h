#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace braid {

/// Random numbers that are the same everywhere, unlike those of the standard distributions.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : engine_(seed) {}

  /// Of 0 … count - 1. Precondition: count > 0.
  std::size_t below(std::size_t count) { return engine_() % count; }
  /// In [0, 1).
  double share() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace braid
