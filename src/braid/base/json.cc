#include "braid/base/json.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

namespace braid {
namespace {

bool is_flat(const Json& array) {
  return std::ranges::none_of(array, [](const Json& item) { return item.is_structured(); });
}

void append_double(std::string& text, double value) {
  assert(std::isfinite(value));
  char buffer[32];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
  const std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
  text += digits;
  if (digits.find_first_of(".en") == std::string_view::npos) text += ".0";
}

void append_line(std::string& text, std::size_t depth) {
  text += '\n';
  text.append(2 * depth, ' ');
}

// NOLINTNEXTLINE(misc-no-recursion): values are built by this program, not read.
void append(std::string& text, const Json& json, std::size_t depth) {
  if (json.is_number_float()) {
    append_double(text, json.get<double>());
  } else if (!json.is_structured()) {
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  } else if (json.empty()) {
    text += json.is_object() ? "{}" : "[]";
  } else if (json.is_array() && is_flat(json)) {
    text += '[';
    for (std::size_t i = 0; i < json.size(); ++i) {
      if (i > 0) text += ", ";
      append(text, json[i], depth);
    }
    text += ']';
  } else {
    text += json.is_object() ? '{' : '[';
    bool first = true;
    for (const auto& item : json.items()) {
      if (!first) text += ',';
      first = false;
      append_line(text, depth + 1);
      if (json.is_object()) {
        text += Json(item.key()).dump(-1, ' ', false, Json::error_handler_t::replace);
        text += ": ";
      }
      append(text, item.value(), depth + 1);
    }
    append_line(text, depth);
    text += json.is_object() ? '}' : ']';
  }
}

}  // namespace

std::string to_text(const Json& json) {
  std::string text;
  append(text, json, 0);
  text += '\n';
  return text;
}

}  // namespace braid
