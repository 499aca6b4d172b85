#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/cli/verb.h"

namespace braid {

/// A decimal integer in [least, most] that is all of `text` (no sign plus, spaces, 0x or 1e3).
/// Throws Error naming `option`.
std::int64_t parse_count(const std::string& option, const std::string& text, std::int64_t least,
                         std::int64_t most);

/// Adds an option that takes such an integer and hands it to `set`.
VerbOption add_count(Verb& verb, const std::string& name, std::int64_t least, std::int64_t most,
                     const std::string& description, std::function<void(std::int64_t)> set);

/// The same, kept in `value`.
template <typename Integer>
VerbOption add_count(Verb& verb, const std::string& name, Integer& value, std::int64_t least,
                     std::int64_t most, const std::string& description) {
  return add_count(verb, name, least, most, description,
                   [&value](std::int64_t count) { value = static_cast<Integer>(count); });
}

}  // namespace braid
