#include "braid/trainers/exchange/nested_settings.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

std::string text_of(const Value& value, bool inside) {
  switch (value.kind()) {
    case Value::Kind::string: {
      const std::string text(value.as_string());
      return inside ? '"' + text + '"' : text;
    }
    case Value::Kind::boolean:
      return value.as_bool() ? "true" : "false";
    case Value::Kind::integer:
      return std::to_string(value.as_int());
    case Value::Kind::number:
      return fmt::format("{}", value.as_double());
    case Value::Kind::array: {
      std::string text;
      for (const Value& each : value.elements()) {
        text += (text.empty() ? "" : ", ") + text_of(each, true);
      }
      return "[" + text + "]";
    }
    case Value::Kind::object:
      return "{}";
    case Value::Kind::missing:
    case Value::Kind::null:
      break;
  }
  return "null";
}

std::string text_of(const toml::node& node, bool inside) {
  if (const toml::array* array = node.as_array()) {
    std::string text;
    for (const toml::node& each : *array) text += (text.empty() ? "" : ", ") + text_of(each, true);
    return "[" + text + "]";
  }
  if (node.is_table()) return "{}";
  if (const auto* text = node.as_string()) return inside ? '"' + text->get() + '"' : text->get();
  std::ostringstream written;
  node.visit([&written](const auto& each) {
    if constexpr (toml::is_value<decltype(each)>) written << each;
  });
  return written.str();
}

void add_settings(const Value& object, const std::string& prefix, std::vector<Setting>& settings) {
  for (const auto& [key, value] : object.members()) {
    const std::string name = prefix + std::string(key);
    if (value.is_object() && value.size() > 0) {
      add_settings(value, name + ".", settings);
    } else {
      settings.push_back({name, text_of(value, false), value.where().line});
    }
  }
}

void add_settings(const toml::table& table, const std::string& prefix,
                  std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      add_settings(*inner, name + ".", settings);
    } else {
      settings.push_back({name, text_of(node, false), static_cast<int>(node.source().begin.line)});
    }
  }
}

}  // namespace

namespace {

/// The end of a string of TOML that begins at `at`; the text's where it is not closed.
std::size_t end_of_toml_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool is_long = text.substr(at, 3) == std::string(3, quote);
  const std::string_view mark = text.substr(at, is_long ? 3 : 1);
  for (at += mark.size(); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text.substr(at, mark.size()) == mark) {
      at += mark.size();
      // Up to two quotes may stand before the closing ones.
      while (is_long && at < text.size() && text[at] == quote) ++at;
      return at;
    }
  }
  return text.size();
}

std::size_t end_of_toml_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

/// The end of a line that may hold an array or a string of several.
std::size_t end_of_toml_value(std::string_view text, std::size_t at) {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n' && depth <= 0) return at;
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    at = c == '"' || c == '\'' ? end_of_toml_string(text, at)
         : c == '#'            ? end_of_toml_line(text, at)
                               : at + 1;
  }
  return text.size();
}

/// The text with a question mark for every byte of a character outside of ASCII. toml++ 3.3 takes
/// some of these, where only white space may stand, for impossible.
std::string in_ascii(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string ascii(text);
  std::replace_if(
      ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; },
      '?');
  return ascii;
}

/// Throws Error for a table without a name, which toml++ 3.3 takes for impossible.
void check_tables(std::string_view text, const std::string& file) {
  const auto skip_spaces = [text](std::size_t at) {
    return std::min(text.find_first_not_of(" \t", at), text.size());
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    at = skip_spaces(at);
    if (text.substr(at, 1) != "[") {
      at = end_of_toml_value(text, at);
      continue;
    }
    std::size_t name = skip_spaces(at + 1);
    if (text.substr(name, 1) == "[") name = skip_spaces(name + 1);
    const char c = name < text.size() ? text[name] : '\n';
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    constexpr std::string_view kOthers = "0123456789_-\"']";
    if (!is_letter && kOthers.find(c) == std::string_view::npos) {
      const auto line =
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      throw Error(Where{file, 1 + static_cast<int>(line), ""},
                  "this is no TOML: a table has no name", "write [name]");
    }
    at = end_of_toml_line(text, at);
  }
}

}  // namespace

std::vector<Setting> settings_of_toml(std::string_view text, const std::string& file) {
  const std::string ascii = in_ascii(text);
  check_tables(ascii, file);
  try {
    std::vector<Setting> settings;
    add_settings(toml::parse(std::string_view(ascii), file), "", settings);
    std::stable_sort(settings.begin(), settings.end(),
                     [](const Setting& a, const Setting& b) { return a.line < b.line; });
    return settings;
  } catch (const toml::parse_error& error) {
    throw Error(Where{file, static_cast<int>(error.source().begin.line), ""},
                "this is no TOML: " + on_one_line(std::string(error.description())),
                "correct that line");
  }
}

std::vector<Setting> settings_of_json(std::string_view text, const std::string& file) {
  const Document document = Document::parse(text, Document::Syntax::json, file);
  std::vector<Setting> settings;
  add_settings(document.root(), "", settings);
  return settings;
}

}  // namespace braid
