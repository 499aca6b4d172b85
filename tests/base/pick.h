#pragma once

#include <random>

namespace braid::test {

/// A whole number from `least` to `most`, all nearly equally likely; the same with every library.
inline int pick(std::mt19937_64& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

}  // namespace braid::test
