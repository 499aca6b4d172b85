#include "braid/trainers/exchange/settings.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "braid/base/text.h"

namespace braid {
namespace {

bool is_key_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// Reads a value that begins at `at`, and moves `at` behind it.
std::string read_value(std::string_view text, std::size_t& at, bool is_yaml) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const std::size_t end = text.find(text[at], at + 1);
    if (end != std::string_view::npos) {
      std::string value(text.substr(at + 1, end - at - 1));
      at = end + 1;
      return value;
    }
  }
  if (at < text.size() && text[at] == '[') {
    const std::size_t end = text.find(']', at);
    if (end != std::string_view::npos) {
      std::string value(text.substr(at, end + 1 - at));
      at = end + 1;
      return value;
    }
  }
  const std::string_view stops = is_yaml ? "\r\n#,}" : " \t\r\n#,()\\;";
  const std::size_t end = std::min(text.find_first_of(stops, at), text.size());
  std::string value(text.substr(at, end - at));
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.pop_back();
  at = end;
  return value;
}

void skip_spaces(std::string_view text, std::size_t& at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
}

/// Moves `at` behind one part of a Python type, as `int`, `torch.dtype` or `Optional[list[int]]`;
/// false: there is none.
bool skip_type_part(std::string_view text, std::size_t& at) {
  const bool is_word = at < text.size() &&
                       (std::isalpha(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  if (!is_word) return false;
  while (at < text.size() && is_key_part(text[at])) ++at;
  int depth = 0;
  while (at < text.size() && (depth > 0 || text[at] == '[') && text[at] != '\n') {
    depth += text[at] == '[' ? 1 : text[at] == ']' ? -1 : 0;
    ++at;
  }
  return depth == 0;
}

/// Where the value of a Python assignment with a type begins, whose type is at `at`: `int = 16384`
/// behind `SEQ:`. npos: that is no type with a value behind it.
std::size_t behind_type(std::string_view text, std::size_t at) {
  for (;;) {
    skip_spaces(text, at);
    if (!skip_type_part(text, at)) return std::string_view::npos;
    skip_spaces(text, at);
    if (text.substr(at, 1) != "|") break;
    ++at;
  }
  const bool is_equal = text.substr(at, 1) == "=" && text.substr(at, 2) != "==";
  return is_equal ? at + 1 : std::string_view::npos;
}

}  // namespace

std::vector<Setting> settings_of(std::string_view text) {
  std::vector<Setting> settings;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (text[at] == '"' || text[at] == '\'') {
      const std::size_t end = text.find(text[at], at + 1);
      at = end == std::string_view::npos ? at + 1 : end + 1;
      continue;
    }
    if (!is_key_part(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && is_key_part(text[at])) ++at;
    const std::size_t end = at;
    skip_spaces(text, at);
    const bool has_colon = text.substr(at, 2) == ": ";
    const std::size_t typed = has_colon ? behind_type(text, at + 1) : std::string_view::npos;
    const bool is_yaml = has_colon && typed == std::string_view::npos;
    const bool is_equal = text.substr(at, 1) == "=" && text.substr(at, 2) != "==";
    if (!has_colon && !is_equal) continue;
    at = has_colon && !is_yaml ? typed : at + 1;
    skip_spaces(text, at);
    std::string value = read_value(text, at, is_yaml);
    if (!value.empty()) {
      settings.push_back({std::string(text.substr(begin, end - begin)), std::move(value)});
    }
  }
  return settings;
}

GivenArguments as_arguments(const std::vector<Setting>& settings, const std::string& file) {
  std::vector<std::string> words;
  words.reserve(settings.size());
  for (const Setting& setting : settings)
    words.push_back("--" + setting.name + "=" + setting.value);
  GivenArguments given(words, file);
  for (const Setting& setting : settings) given.set_line("--" + setting.name, setting.line);
  return given;
}

bool is_on(GivenArguments& given, std::string_view name) {
  const std::string value = lowered(given.text(name).value_or("false"));
  return value == "true" || value == "yes" || value == "1";
}

void note_usual_settings(const GivenArguments& given, std::span<const UsualSetting> usual,
                         Import& run) {
  for (const UsualSetting& each : usual) {
    if (given.is_given(each.name)) continue;
    run.not_given.push_back(
        {fmt::format("{}: {}", each.name.substr(2), each.text), std::string(each.option)});
  }
}

std::vector<std::string> unknown_settings(const GivenArguments& given) {
  std::vector<std::string> all = given.unknown();
  for (std::string& each : all) {
    each.erase(0, 2);
    const std::size_t space = each.find(' ');
    if (space != std::string::npos) each[space] = '=';
  }
  return all;
}

}  // namespace braid
