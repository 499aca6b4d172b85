#pragma once

#include <cstdlib>
#include <string>

namespace braid::test {

/// How many the environment's variable of that name says, or else `usual`.
inline int trials(const char* name, int usual) {
  const char* count = std::getenv(name);
  return count == nullptr ? usual : std::stoi(count);
}

}  // namespace braid::test
