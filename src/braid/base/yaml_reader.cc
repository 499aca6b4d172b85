#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "braid/base/document_builder.h"
#include "braid/base/readers.h"
#include "braid/base/text.h"

namespace braid {
namespace {

bool all_of_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

constexpr std::string_view kDecimal = "0123456789";

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::ranges::find(words, text) != words.end();
}

// The core schema's float: [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_decimal_float(std::string_view text) {
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (power.starts_with('+') || power.starts_with('-')) power.remove_prefix(1);
    if (!all_of_digits(power, kDecimal)) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return all_of_digits(text, kDecimal);
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = text.substr(point + 1);
  if (whole.empty() && fraction.empty()) return false;
  return (whole.empty() || all_of_digits(whole, kDecimal)) &&
         (fraction.empty() || all_of_digits(fraction, kDecimal));
}

class YamlHandler : public YAML::EventHandler {
 public:
  explicit YamlHandler(DocumentData& data) : data_(data), builder_(data) {}

  bool done() const { return documents_ == 1 && ended_; }
  void finish() { builder_.finish(); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second YAML document", "keep one document per file");
  }
  void OnDocumentEnd() override { ended_ = true; }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (wants_key()) fail(mark, "a key of a mapping is empty");
    builder_.add_null(line_of(mark));
    value_read();
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "YAML aliases are not supported", "write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (wants_key()) {
      builder_.set_key(store(value), static_cast<std::uint32_t>(value.size()));
      want_value();
      return;
    }
    if (tag == "!") {
      add_string(mark, value);
    } else {
      add_plain(mark, value);
    }
    value_read();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::array);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Value::Kind::object);
  }
  void OnMapEnd() override { close(); }

 private:
  static int line_of(const YAML::Mark& mark) { return std::max(mark.line, 0) + 1; }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message,
                         const std::string& remedy = {}) const {
    throw Error(Where{data_.file, line_of(mark), {}}, message, remedy);
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) {
      fail(mark, "YAML anchors are not supported", "write the value out");
    }
  }

  // yaml-cpp reports plain scalars and untagged collections as "?" or "", quoted scalars as "!".
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, "YAML tags are not supported", "remove " + in_quotes(tag));
    }
  }

  // Events inside a mapping alternate between keys and values.
  bool wants_key() const { return builder_.in_object() && !has_key_.back(); }
  void want_value() { has_key_.back() = true; }
  void value_read() {
    if (!has_key_.empty()) has_key_.back() = false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Value::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (wants_key()) fail(mark, "a key of a mapping must be plain text", "close every bracket");
    builder_.open(kind, line_of(mark));
    has_key_.push_back(false);
  }

  void close() {
    builder_.close();
    has_key_.pop_back();
    value_read();
  }

  std::uint32_t store(const std::string& value) {
    const std::size_t offset = data_.text.size();
    data_.text += value;
    if (data_.text.size() >= DocumentNode::kNone)
      throw Error(Where{data_.file, 0, {}}, "the file is too large");
    return static_cast<std::uint32_t>(offset);
  }

  void add_string(const YAML::Mark& mark, const std::string& value) {
    const std::uint32_t offset = store(value);
    builder_.add_string(offset, static_cast<std::uint32_t>(value.size()), line_of(mark));
  }

  void add_plain(const YAML::Mark& mark, const std::string& value) {
    static constexpr std::array<std::string_view, 3> kTrue = {"true", "True", "TRUE"};
    static constexpr std::array<std::string_view, 3> kFalse = {"false", "False", "FALSE"};
    const int line = line_of(mark);
    std::string_view unsigned_part = value;
    const bool negative = value.starts_with('-');
    if (negative || value.starts_with('+')) unsigned_part.remove_prefix(1);
    if (is_one_of(value, kTrue)) {
      builder_.add_bool(true, line);
    } else if (is_one_of(value, kFalse)) {
      builder_.add_bool(false, line);
    } else if (value.starts_with("0x") &&
               all_of_digits(value.substr(2), "0123456789abcdefABCDEF")) {
      add_integer(mark, value, value.substr(2), 16);
    } else if (value.starts_with("0o") && all_of_digits(value.substr(2), "01234567")) {
      add_integer(mark, value, value.substr(2), 8);
    } else if (is_decimal_float(unsigned_part)) {
      add_decimal(mark, value, (negative ? "-" : "") + std::string(unsigned_part));
    } else if (is_not_finite(unsigned_part)) {
      fail(mark, "number " + in_quotes(value) + " is not finite", "give a finite one");
    } else {
      add_string(mark, value);
    }
  }

  static bool is_not_finite(std::string_view text) {
    static constexpr std::array<std::string_view, 6> kWords = {".inf", ".Inf", ".INF",
                                                               ".nan", ".NaN", ".NAN"};
    return is_one_of(text, kWords);
  }

  void add_integer(const YAML::Mark& mark, const std::string& value, const std::string& digits,
                   int base) {
    std::int64_t integer = 0;
    const auto result =
        std::from_chars(digits.data(), digits.data() + digits.size(), integer, base);
    if (result.ec != std::errc())
      fail(mark, "number " + in_quotes(value, 40) + " is out of range",
           "give one that a 64-bit number holds");
    builder_.add_integer(integer, line_of(mark));
  }

  // `number` is `value` without a plus sign.
  void add_decimal(const YAML::Mark& mark, const std::string& value, const std::string& number) {
    if (number.find_first_of(".eE") == std::string::npos) {
      std::int64_t integer = 0;
      const char* const end = number.data() + number.size();
      if (std::from_chars(number.data(), end, integer).ec == std::errc()) {
        builder_.add_integer(integer, line_of(mark));
        return;
      }
    }
    const auto real = finite_double(number);
    if (!real)
      fail(mark, "number " + in_quotes(value, 40) + " is out of range",
           "give one that a 64-bit number holds");
    builder_.add_number(*real, line_of(mark));
  }

  DocumentData& data_;
  DocumentBuilder builder_;
  std::vector<bool> has_key_;  ///< By open container: whether a key waits for its value.
  int documents_ = 0;
  bool ended_ = false;
};

// yaml-cpp takes some 35 bytes of memory per byte of text.
constexpr std::size_t kLargestYaml = std::size_t{32} << 20;

// yaml-cpp takes some control characters for the end of the file and guesses other encodings.
void check_characters(std::string_view text, const std::string& file) {
  int line = 1;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const auto c = static_cast<unsigned char>(*at);
    if (c == '\n') ++line;
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f) {
      throw Error(Where{file, line, {}}, "control character in a YAML text");
    }
    at = utf8_next(at, end);
    if (at == nullptr) throw Error(Where{file, line, {}}, "the text is not valid UTF-8");
  }
}

}  // namespace

void read_yaml(std::string_view text, DocumentData& data) {
  if (text.size() > kLargestYaml) {
    throw Error(Where{data.file, 0, {}}, "the YAML text is larger than 32 MiB",
                "write it as JSON, in a file named .json");
  }
  check_characters(text, data.file);
  YamlHandler handler(data);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& exception) {
    const int line = exception.mark.is_null() ? 0 : exception.mark.line + 1;
    throw Error(Where{data.file, line, {}}, "YAML syntax: " + exception.msg);
  }
  if (!handler.done()) throw Error(Where{data.file, 0, {}}, "the file is empty");
  handler.finish();
}

}  // namespace braid
