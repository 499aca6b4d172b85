#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// "a", "a and b", "a, b and c"; `last` stands between the last two.
inline std::string and_list(const std::vector<std::string>& parts,
                            std::string_view last = " and ") {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += i == 0 ? "" : i + 1 < parts.size() ? ", " : last;
    text += parts[i];
  }
  return text;
}

}  // namespace braid
