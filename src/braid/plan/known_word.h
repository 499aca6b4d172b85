#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "braid/base/document.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {

/// The place among those known of a word, which `value` gives. Throws Error with what is meant
/// where it is none of them.
template <class Known>
std::size_t known_place(const Value& value, std::string_view word, const Known& known) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) {
    value.fail("unknown value " + in_quotes(word), did_you_mean(word, known));
  }
  return static_cast<std::size_t>(found - known.begin());
}

/// The same of the value itself.
template <class Known>
std::size_t known_place(const Value& value, const Known& known) {
  return known_place(value, value.as_string(), known);
}

}  // namespace braid
