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

std::vector<Setting> settings_of_toml(std::string_view text, const std::string& file) {
  try {
    std::vector<Setting> settings;
    add_settings(toml::parse(text, file), "", settings);
    std::stable_sort(settings.begin(), settings.end(),
                     [](const Setting& a, const Setting& b) { return a.line < b.line; });
    return settings;
  } catch (const toml::parse_error& error) {
    throw Error(Where{file, static_cast<int>(error.source().begin.line), ""},
                "this is no TOML: " + on_one_line(std::string(error.description())),
                "mend that line");
  }
}

std::vector<Setting> settings_of_json(std::string_view text, const std::string& file) {
  const Document document = Document::parse(text, Document::Syntax::json, file);
  std::vector<Setting> settings;
  add_settings(document.root(), "", settings);
  return settings;
}

}  // namespace braid
