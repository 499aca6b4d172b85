#include "braid/dataflow/text_proto.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr int kDeepest = 20;
constexpr std::size_t kLargestText = std::size_t{64} << 20;
constexpr double kLargestInteger = 9007199254740992;  // 2^53

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '+' || c == '-';
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ProtoField parse() {
    ProtoField root;
    root.name = file_;
    root.line = 1;
    root.is_message = true;
    read_fields(root, 0);
    if (at_ < text_.size()) fail("'}' closes nothing");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(Where{file_, line_, {}}, message);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }

  std::string found() const {
    if (at_end()) return "the end of the file";
    const auto byte = static_cast<unsigned char>(peek());
    if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
    return in_quotes(text_.substr(at_, 1));
  }

  void skip_space() {
    for (; !at_end(); ++at_) {
      const char c = peek();
      if (c == '\n') {
        ++line_;
      } else if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ';') {
        return;
      }
    }
  }

  std::string read_word() {
    const std::size_t begin = at_;
    while (is_word(peek())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string read_string() {
    const char quote = peek();
    const std::size_t begin = ++at_;
    while (peek() != quote) {
      if (at_end() || static_cast<unsigned char>(peek()) < 0x20) {
        fail("a string does not end on its line");
      }
      if (peek() == '\\') fail("strings with '\\' are not read");
      ++at_;
    }
    const std::string_view content = text_.substr(begin, at_ - begin);
    if (!is_utf8(content)) fail("a string is not UTF-8");
    ++at_;
    return std::string(content);
  }

  // NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest.
  void read_fields(ProtoField& message, int depth) {
    if (depth > kDeepest) fail(fmt::format("more than {} levels of messages", kDeepest));
    for (;;) {
      skip_space();
      if (at_end() || peek() == '}') return;
      ProtoField field;
      field.line = line_;
      field.name = read_word();
      if (field.name.empty()) fail("expected the name of a field, found " + found());
      skip_space();
      const bool colon = peek() == ':';
      if (colon) {
        ++at_;
        skip_space();
      }
      if (peek() == '{') {
        ++at_;
        field.is_message = true;
        read_fields(field, depth + 1);
        if (peek() != '}')
          fail(fmt::format("the message opened in line {} is not closed", field.line));
        ++at_;
      } else if (!colon) {
        fail(
            fmt::format("expected ':' or '{{' after {}, found {}", in_quotes(field.name), found()));
      } else if (peek() == '"' || peek() == '\'') {
        field.in_quotes = true;
        field.scalar = read_string();
      } else {
        field.scalar = read_word();
        if (field.scalar.empty()) {
          fail(fmt::format("expected a value for {}, found {}", in_quotes(field.name), found()));
        }
      }
      message.fields.push_back(std::move(field));
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

ProtoField parse_text_proto(std::string_view text, const std::string& file) {
  if (text.size() > kLargestText) throw Error(Where{file, 0, {}}, "the text is larger than 64 MiB");
  return Parser(text, file).parse();
}

ProtoReader::ProtoReader(const ProtoField& message, std::string path, std::string file)
    : message_(&message), path_(std::move(path)), file_(std::move(file)) {}

void ProtoReader::fail_at(int line, std::string_view name, const std::string& message,
                          const std::string& remedy) const {
  std::string key = path_;
  if (!name.empty()) key += (key.empty() ? "" : ".") + abbreviated(name, 60);
  throw Error({file_, line, key}, message, remedy);
}

void ProtoReader::fail(std::string_view name, const std::string& message,
                       const std::string& remedy) const {
  int line = message_->line;
  for (const ProtoField& field : message_->fields) {
    if (field.name == name) line = field.line;
  }
  fail_at(line, name, message, remedy);
}

const ProtoField* ProtoReader::find(std::string_view name) {
  asked_.emplace_back(name);
  const ProtoField* found = nullptr;
  for (const ProtoField& field : message_->fields) {
    if (field.name != name) continue;
    if (found != nullptr) {
      fail_at(field.line, name, fmt::format("given again; it is in line {} already", found->line));
    }
    found = &field;
  }
  return found;
}

const ProtoField& ProtoReader::required(std::string_view name) {
  const ProtoField* field = find(name);
  if (field == nullptr) fail(name, "missing key");
  return *field;
}

double ProtoReader::parse(const ProtoField& field, double least, double most) const {
  const std::optional<double> value =
      field.is_message || field.in_quotes ? std::nullopt : finite_double(field.scalar);
  if (!value) {
    fail_at(field.line, field.name,
            field.is_message ? "expected a number, found a message"
                             : "expected a number, found " + in_quotes(field.scalar));
  }
  if (*value < least || *value > most) {
    fail_at(field.line, field.name, fmt::format("{} is not in [{}, {}]", *value, least, most));
  }
  return *value;
}

bool ProtoReader::has(std::string_view name) { return find(name) != nullptr; }

double ProtoReader::number(std::string_view name, double otherwise, double least, double most) {
  const ProtoField* field = find(name);
  return field == nullptr ? otherwise : parse(*field, least, most);
}

double ProtoReader::required_number(std::string_view name, double least, double most) {
  return parse(required(name), least, most);
}

std::int64_t ProtoReader::integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                  std::int64_t most) {
  const ProtoField* field = find(name);
  return field == nullptr ? otherwise : required_integer(name, least, most);
}

std::int64_t ProtoReader::required_integer(std::string_view name, std::int64_t least,
                                           std::int64_t most) {
  const ProtoField& field = required(name);
  const double value = parse(field, std::max(static_cast<double>(least), -kLargestInteger),
                             std::min(static_cast<double>(most), kLargestInteger));
  if (value != std::floor(value))
    fail_at(field.line, name, "expected an integer, found " + field.scalar);
  return static_cast<std::int64_t>(value);
}

bool ProtoReader::boolean(std::string_view name, bool otherwise) {
  return word(name, {"false", "true"}, otherwise ? 1 : 0) == 1;
}

std::string ProtoReader::text(std::string_view name, std::string_view otherwise) {
  const ProtoField* field = find(name);
  if (field == nullptr) return std::string(otherwise);
  if (!field->in_quotes) fail_at(field->line, name, "expected a text in quotes");
  return field->scalar;
}

std::size_t ProtoReader::word(std::string_view name, std::initializer_list<std::string_view> words,
                              std::size_t otherwise) {
  const ProtoField* field = find(name);
  if (field == nullptr) return otherwise;
  const auto* const at = std::find(words.begin(), words.end(), field->scalar);
  if (field->is_message || at == words.end()) {
    const std::vector<std::string_view> known(words);
    fail_at(field->line, name,
            field->is_message ? "expected a word, found a message"
                              : "unknown word " + in_quotes(field->scalar),
            did_you_mean(field->scalar, known));
  }
  return static_cast<std::size_t>(at - words.begin());
}

ProtoReader ProtoReader::message(std::string_view name) {
  const ProtoField& field = required(name);
  if (!field.is_message) fail_at(field.line, name, "expected a message in braces");
  return {field, path_.empty() ? field.name : path_ + "." + field.name, file_};
}

std::vector<ProtoReader> ProtoReader::messages(std::string_view name) {
  asked_.emplace_back(name);
  std::vector<ProtoReader> found;
  for (const ProtoField& field : message_->fields) {
    if (field.name != name) continue;
    if (!field.is_message) fail_at(field.line, name, "expected a message in braces");
    found.emplace_back(
        field, fmt::format("{}{}{}[{}]", path_, path_.empty() ? "" : ".", field.name, found.size()),
        file_);
  }
  return found;
}

std::vector<std::string> ProtoReader::message_names() const {
  std::vector<std::string> names;
  for (const ProtoField& field : message_->fields) {
    if (field.is_message) names.push_back(field.name);
  }
  return names;
}

void ProtoReader::ignore(std::initializer_list<std::string_view> names) {
  asked_.insert(asked_.end(), names.begin(), names.end());
}

void ProtoReader::finish() const {
  for (const ProtoField& field : message_->fields) {
    if (std::find(asked_.begin(), asked_.end(), field.name) == asked_.end()) {
      fail_at(field.line, field.name, "unknown key", did_you_mean(field.name, asked_));
    }
  }
}

}  // namespace braid
