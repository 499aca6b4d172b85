#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// End of the UTF-8 sequence that starts at `at`, or nullptr when the bytes there are no valid one
/// (overlong forms, surrogates and code points past U+10FFFF included). Needs at < end.
const char* utf8_next(const char* at, const char* end);

/// Whether all of `text` is valid UTF-8.
bool is_utf8(std::string_view text);

/// Appends the UTF-8 form of a code point below 0x110000.
void append_utf8(std::string& text, char32_t code_point);

/// `text` with its ASCII letters in lower case.
std::string lowered(std::string_view text);

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `a` comes before `b` as people sort names: runs of digits by their value, "llama-3-8b"
/// before "llama-3-70b", and a name before those that go on from it. A strict order of names that
/// differ in more than leading zeros; equal bytes decide those.
bool is_before_naturally(std::string_view a, std::string_view b);

constexpr bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// The double nearest to a decimal number that is all of `text` ("-1.5e3"; no sign plus, no spaces,
/// no "inf" or "nan"). nullopt when it is no such number or its magnitude is too large; too small
/// rounds to zero.
std::optional<double> finite_double(std::string_view text);

/// `text`, or when it is longer its first `most` bytes or a few less (whole characters) and "…".
std::string abbreviated(std::string_view text, std::size_t most);

/// `text` abbreviated and in single quotes, for an error message.
std::string in_quotes(std::string_view text, std::size_t most = 60);

}  // namespace braid
