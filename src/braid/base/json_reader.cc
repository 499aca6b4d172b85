#include <algorithm>
#include <charconv>
#include <cstring>

#include "braid/base/document_builder.h"
#include "braid/base/readers.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// Reads the text in one pass. The terminating zero of std::string serves as the sentinel: every
// look-ahead stops there because no production accepts it.
class JsonReader {
 public:
  explicit JsonReader(DocumentData& data)
      : data_(data),
        builder_(data),
        begin_(data.text.data()),
        at_(begin_),
        end_(begin_ + data.text.size()) {}

  void read() {
    if (data_.text.starts_with("\xef\xbb\xbf")) at_ += 3;
    skip_space();
    if (at_ == end_) fail("the file is empty");
    read_value();
    skip_space();
    if (at_ != end_) fail("text after the end of the JSON value");
    builder_.finish();
  }

 private:
  struct Span {
    std::uint32_t offset;
    std::uint32_t length;
  };

  [[noreturn]] void fail(const std::string& message, const std::string& remedy = {}) const {
    throw Error(Where{data_.file, line_, {}}, message, remedy);
  }

  // What stands at the current place, for an error message.
  std::string found() const {
    if (at_ == end_) return "the end of the file";
    const char* next = utf8_next(at_, end_);
    if (next == nullptr) return "a byte that is not UTF-8";
    if (static_cast<unsigned char>(*at_) < 0x20 || *at_ == 0x7f) return "a control character";
    return in_quotes({at_, static_cast<std::size_t>(next - at_)});
  }

  void skip_space() {
    for (;; ++at_) {
      if (*at_ == '\n') {
        ++line_;
      } else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r') {
        return;
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): bounded by the builder's nesting limit.
  void read_value() {
    switch (*at_) {
      case '{':
        read_object();
        return;
      case '[':
        read_array();
        return;
      case '"': {
        const int line = line_;
        const Span span = read_string();
        builder_.add_string(span.offset, span.length, line);
        return;
      }
      case 't':
        read_word("true");
        builder_.add_bool(true, line_);
        return;
      case 'f':
        read_word("false");
        builder_.add_bool(false, line_);
        return;
      case 'n':
        read_word("null");
        builder_.add_null(line_);
        return;
      default:
        if (*at_ == '-' || is_digit(*at_)) {
          read_number();
          return;
        }
        fail_value("expected a value");
    }
  }

  // Nothing that can stand here; what other languages write for numbers is named.
  [[noreturn]] void fail_value(const char* expected) const {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    for (const std::string_view word : {"NaN", "nan", "Infinity", "inf"}) {
      if (!rest.starts_with(word)) continue;
      fail(std::string(word) + " is not a number in JSON", "give a finite number");
    }
    fail(expected + (", found " + found()));
  }

  void read_word(std::string_view word) {
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) !=
        word) {
      fail_value("expected a value");
    }
    at_ += word.size();
  }

  void read_object() {
    builder_.open(Value::Kind::object, line_);
    ++at_;
    skip_space();
    if (*at_ == '}') {
      ++at_;
      builder_.close();
      return;
    }
    for (;;) {
      if (*at_ != '"') fail("expected a key in double quotes, found " + found());
      const Span key = read_string();
      builder_.set_key(key.offset, key.length);
      skip_space();
      if (*at_ != ':') fail("expected ':' after a key, found " + found());
      ++at_;
      skip_space();
      read_value();
      skip_space();
      if (*at_ == ',') {
        ++at_;
        skip_space();
        continue;
      }
      if (*at_ != '}') fail("expected ',' or '}' in an object, found " + found());
      ++at_;
      builder_.close();
      return;
    }
  }

  void read_array() {
    builder_.open(Value::Kind::array, line_);
    ++at_;
    skip_space();
    if (*at_ == ']') {
      ++at_;
      builder_.close();
      return;
    }
    for (;;) {
      read_value();
      skip_space();
      if (*at_ == ',') {
        ++at_;
        skip_space();
        continue;
      }
      if (*at_ != ']') fail("expected ',' or ']' in an array, found " + found());
      ++at_;
      builder_.close();
      return;
    }
  }

  void read_number() {
    const char* const first = at_;
    if (*at_ == '-') ++at_;
    if (*at_ == '0') {
      ++at_;
    } else {
      read_digits();
    }
    bool integral = true;
    if (*at_ == '.') {
      integral = false;
      ++at_;
      read_digits();
    }
    if (*at_ == 'e' || *at_ == 'E') {
      integral = false;
      ++at_;
      if (*at_ == '+' || *at_ == '-') ++at_;
      read_digits();
    }
    if (integral) {
      std::int64_t value = 0;
      if (std::from_chars(first, at_, value).ec == std::errc()) {
        builder_.add_integer(value, line_);
        return;
      }
    }
    const auto value = finite_double({first, static_cast<std::size_t>(at_ - first)});
    if (!value) {
      fail("number " + in_quotes({first, static_cast<std::size_t>(at_ - first)}, 40) +
               " is out of range",
           "give one that a 64-bit number holds");
    }
    builder_.add_number(*value, line_);
  }

  void read_digits() {
    if (!is_digit(*at_)) fail_value("expected a digit in a number");
    while (is_digit(*at_)) ++at_;
  }

  // Reads a string and replaces its escapes in place, which never makes it longer.
  Span read_string() {
    ++at_;
    char* const first = at_;
    while (*at_ != '"' && *at_ != '\\') step_character();
    char* out = at_;
    while (*at_ != '"') {
      if (*at_ == '\\') {
        out = read_escape(out);
      } else {
        const char* from = at_;
        step_character();
        std::memmove(out, from, static_cast<std::size_t>(at_ - from));
        out += at_ - from;
      }
    }
    ++at_;
    return {static_cast<std::uint32_t>(first - begin_), static_cast<std::uint32_t>(out - first)};
  }

  void step_character() {
    const auto c = static_cast<unsigned char>(*at_);
    if (c < 0x20) {
      if (at_ == end_) fail("a string does not end");
      fail("control character in a string; write it as an escape");
    }
    if (c < 0x80) {
      ++at_;
      return;
    }
    const char* next = utf8_next(at_, end_);
    if (next == nullptr) fail("a string is not valid UTF-8");
    at_ += next - at_;
  }

  char* read_escape(char* out) {
    ++at_;
    const char c = *at_;
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        *out = c;
        return out + 1;
      case 'b':
        *out = '\b';
        return out + 1;
      case 'f':
        *out = '\f';
        return out + 1;
      case 'n':
        *out = '\n';
        return out + 1;
      case 'r':
        *out = '\r';
        return out + 1;
      case 't':
        *out = '\t';
        return out + 1;
      case 'u':
        return read_unicode_escape(out);
      default:
        fail("unknown escape in a string");
    }
  }

  char* read_unicode_escape(char* out) {
    char32_t code = read_hex4();
    if (code >= 0xdc00 && code <= 0xdfff) fail("a lone surrogate in a \\u escape");
    if (code >= 0xd800 && code <= 0xdbff) {
      if (at_[0] != '\\' || at_[1] != 'u') fail("a lone surrogate in a \\u escape");
      at_ += 2;
      const char32_t low = read_hex4();
      if (low < 0xdc00 || low > 0xdfff) fail("a lone surrogate in a \\u escape");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    std::string utf8;
    append_utf8(utf8, code);
    return std::ranges::copy(utf8, out).out;
  }

  char32_t read_hex4() {
    char32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = *at_;
      code <<= 4;
      if (is_digit(c)) {
        code |= static_cast<char32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        code |= static_cast<char32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        code |= static_cast<char32_t>(c - 'A' + 10);
      } else {
        fail("expected four hexadecimal digits after \\u");
      }
    }
    return code;
  }

  DocumentData& data_;
  DocumentBuilder builder_;
  char* const begin_;
  char* at_;
  char* const end_;
  int line_ = 1;
};

}  // namespace

void read_json(DocumentData& data) { JsonReader(data).read(); }

}  // namespace braid
