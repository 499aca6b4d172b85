#include "braid/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace braid {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

const char* utf8_next(const char* at, const char* end) {
  const auto lead = static_cast<unsigned char>(*at);
  if (lead < 0x80) return at + 1;
  // Continuation bytes, and the range of the first of them (the Unicode standard, table 3-7).
  int more = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    more = 1;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    more = 2;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    more = 3;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return nullptr;
  }
  if (end - at <= more) return nullptr;
  const auto second = static_cast<unsigned char>(at[1]);
  if (second < low || second > high) return nullptr;
  for (int i = 2; i <= more; ++i) {
    if (!is_continuation(at[i])) return nullptr;
  }
  return at + more + 1;
}

bool is_utf8(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    at = utf8_next(at, end);
    if (at == nullptr) return false;
  }
  return true;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto c = static_cast<std::uint32_t>(code_point);
  const auto continuation = [&](int shift) {
    text += static_cast<char>(0x80 | ((c >> shift) & 0x3f));
  };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | (c >> 6));
    continuation(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | (c >> 12));
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xf0 | (c >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<double> finite_double(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ptr != end || text.empty()) return std::nullopt;
  // from_chars does not say on which side a number is out of range; strtod does.
  if (result.ec == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else if (result.ec != std::errc()) {
    return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string abbreviated(std::string_view text, std::size_t most) {
  std::size_t length = std::min(text.size(), most);
  while (length > 0 && length < text.size() && is_continuation(text[length])) --length;
  std::string result(text.substr(0, length));
  if (length < text.size()) result += "…";
  return result;
}

std::string in_quotes(std::string_view text, std::size_t most) {
  return "'" + abbreviated(text, most) + "'";
}

bool is_before_naturally(std::string_view a, std::string_view b) {
  const auto number_at = [](std::string_view text, std::size_t& at) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view digits = text.substr(at, end - at);
    at = end;
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view of_a = number_at(a, i), of_b = number_at(b, j);
      if (of_a.size() != of_b.size()) return of_a.size() < of_b.size();
      if (of_a != of_b) return of_a < of_b;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  const std::size_t left_of_a = a.size() - i, left_of_b = b.size() - j;
  return left_of_a != left_of_b ? left_of_a < left_of_b : a < b;
}

}  // namespace braid
