#include "braid/base/yaml_text.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace braid {
namespace {

/// Whether a text is a word that YAML takes for nothing but itself.
bool is_plain_word(const std::string& text) {
  constexpr std::array<std::string_view, 10> kOther = {"true", "false", "null", "yes",   "no",
                                                       "on",   "off",   "True", "False", "~"};
  if (text.empty() || std::find(kOther.begin(), kOther.end(), text) != kOther.end()) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool letters = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  });
  const bool option = text.starts_with("--") && text.size() > 2;
  return letters && (is_letter(text.front()) || text.front() == '/' || option);
}

std::string scalar(const Json& value) {
  return value.is_string() ? yaml_word(value.get<std::string>()) : value.dump();
}

void write_value(const Json& value, std::size_t indent, std::string& text);

void write_lines(const std::string& lines, std::size_t indent, std::string& text) {
  text += " |-";
  std::size_t at = 0;
  while (at <= lines.size()) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    text += "\n" + std::string(indent, ' ') + lines.substr(at, end - at);
    at = end + 1;
  }
  text += "\n";
}

void write_members(const Json& object, std::size_t indent, std::string& text) {
  for (const auto& [key, value] : object.items()) {
    text += std::string(indent, ' ') + scalar(Json(key)) + ":";
    // Lists stand below their key, as Kubernetes' own are written.
    write_value(value, value.is_array() ? indent : indent + 2, text);
  }
}

void write_elements(const Json& array, std::size_t indent, std::string& text) {
  for (const Json& element : array) {
    std::string own;
    if (element.is_object() && !element.empty()) {
      write_members(element, indent + 2, own);
      own.replace(indent, 2, "- ");
      text += own;
    } else {
      text += std::string(indent, ' ') + "-";
      write_value(element, indent + 2, text);
    }
  }
}

void write_value(const Json& value, std::size_t indent, std::string& text) {
  if (value.is_structured() && !value.empty()) {
    text += "\n";
    value.is_object() ? write_members(value, indent, text) : write_elements(value, indent, text);
  } else if (value.is_string() && value.get<std::string>().find('\n') != std::string::npos) {
    write_lines(value.get<std::string>(), indent, text);
  } else {
    text += " " + scalar(value) + "\n";
  }
}

}  // namespace

std::string yaml_word(const std::string& text) {
  if (is_plain_word(text)) return text;
  // Single quotes leave what JSON would escape as it is.
  const bool printable = std::all_of(text.begin(), text.end(),
                                     [](char c) { return c >= ' ' && c <= '~' && c != '\''; });
  if (printable && text.find('"') != std::string::npos) return "'" + text + "'";
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string yaml_text(const Json& json) {
  std::string text;
  if (json.is_object() && !json.empty()) {
    write_members(json, 0, text);
  } else if (json.is_array() && !json.empty()) {
    write_elements(json, 0, text);
  } else {
    text = json.dump() + "\n";
  }
  return text;
}

}  // namespace braid
