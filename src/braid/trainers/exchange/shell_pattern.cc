#include "braid/trainers/exchange/shell_pattern.h"

#include <algorithm>
#include <cctype>

namespace braid {
namespace {

/// Values up to which patterns are tried at every place.
constexpr std::size_t kLongestValue = 512;

/// Whether one character is in the set that begins at `at`, which moves behind it; nullopt: there
/// is no set, but a bracket.
std::optional<bool> is_in_set(std::string_view pattern, std::size_t& at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); ++i, first = false) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) return std::nullopt;
  at = i + 1;
  return found != negated;
}

/// Whether the sign at `at` takes the character; it moves behind the sign where it does.
bool takes(std::string_view pattern, std::size_t& at, char c) {
  if (at >= pattern.size()) return false;
  if (pattern[at] == '?') {
    ++at;
    return true;
  }
  if (pattern[at] == '[') {
    std::size_t behind = at;
    if (const auto in_set = is_in_set(pattern, behind, c)) {
      if (*in_set) at = behind;
      return *in_set;
    }
  }
  if (pattern[at] != c) return false;
  ++at;
  return true;
}

/// Length of the longest, or shortest, text at the beginning that the pattern stands for.
std::optional<std::size_t> prefix_of(std::string_view pattern, std::string_view value,
                                     bool longest) {
  std::optional<std::size_t> found;
  for (std::size_t length = 0; length <= value.size(); ++length) {
    if (!matches_shell_pattern(pattern, value.substr(0, length))) continue;
    found = length;
    if (!longest) break;
  }
  return found;
}

std::optional<std::size_t> suffix_of(std::string_view pattern, std::string_view value,
                                     bool longest) {
  std::optional<std::size_t> found;
  for (std::size_t length = 0; length <= value.size(); ++length) {
    if (!matches_shell_pattern(pattern, value.substr(value.size() - length))) continue;
    found = length;
    if (!longest) break;
  }
  return found;
}

std::string replaced(const std::string& value, std::string_view sign, std::string_view pattern,
                     std::string_view text) {
  if (sign == "/#") {
    const auto length = prefix_of(pattern, value, true);
    return length ? std::string(text) + value.substr(*length) : value;
  }
  if (sign == "/%") {
    const auto length = suffix_of(pattern, value, true);
    return length ? value.substr(0, value.size() - *length) + std::string(text) : value;
  }
  std::string result;
  std::size_t at = 0;
  while (at < value.size()) {
    const auto length = prefix_of(pattern, std::string_view(value).substr(at), true);
    if (!length || *length == 0) {
      result += value[at++];
      continue;
    }
    result += text;
    at += *length;
    if (sign == "/") break;
  }
  return result + value.substr(at);
}

std::string in_case(std::string value, std::string_view sign) {
  const bool upper = sign.front() == '^';
  const std::size_t count =
      sign.size() == 2 ? value.size() : std::min<std::size_t>(1, value.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto c = static_cast<unsigned char>(value[i]);
    value[i] = static_cast<char>(upper ? std::toupper(c) : std::tolower(c));
  }
  return value;
}

}  // namespace

bool matches_shell_pattern(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, i = 0;
  std::size_t star = std::string_view::npos, taken = 0;
  while (i < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (takes(pattern, at, text[i])) {
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.substr(std::min(at, pattern.size())).find_first_not_of('*') ==
         std::string_view::npos;
}

std::optional<std::string> transformed_value(const std::string& value, std::string_view sign,
                                             std::string_view pattern, std::string_view text) {
  const char first = sign.empty() ? ' ' : sign.front();
  if (first == '^' || first == ',') {
    if (!pattern.empty()) return std::nullopt;
    return in_case(value, sign);
  }
  if (value.size() > kLongestValue || pattern.size() > kLongestValue) return std::nullopt;
  if (first == '/') return pattern.empty() ? value : replaced(value, sign, pattern, text);
  if (first == '#') {
    return value.substr(prefix_of(pattern, value, sign.size() == 2).value_or(0));
  }
  if (first == '%') {
    const std::size_t length = suffix_of(pattern, value, sign.size() == 2).value_or(0);
    return value.substr(0, value.size() - length);
  }
  return std::nullopt;
}

}  // namespace braid
