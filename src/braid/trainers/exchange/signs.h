#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace braid {

/// Whether any of these, by which a trainer's texts are known, stands in the text.
inline bool has_sign(std::string_view text, std::initializer_list<std::string_view> signs) {
  return std::any_of(signs.begin(), signs.end(), [&](std::string_view sign) {
    return text.find(sign) != std::string_view::npos;
  });
}

}  // namespace braid
