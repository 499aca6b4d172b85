#pragma once

#include <cmath>
#include <string>

#include "fuzz/read_input.h"

namespace braid::fuzz {

/// Reads every value of a document in every way that its kind allows.
// NOLINTNEXTLINE(misc-no-recursion): bounded by the nesting that documents may have.
inline void walk(const Value& value) {
  expect(value.where().line >= 0);
  if (value.is_number()) expect(std::isfinite(value.as_double()));
  if (value.is_string()) expect(value.as_string().size() < std::string::npos);
  if (value.is_array()) {
    for (const Value& element : value.elements()) walk(element);
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.members()) {
      expect(value[key].exists());
      walk(member);
    }
  }
}

}  // namespace braid::fuzz
