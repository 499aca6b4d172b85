#include "braid/base/document.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>

#include "braid/base/document_data.h"
#include "braid/base/file.h"
#include "braid/base/quantity.h"
#include "braid/base/readers.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"

namespace braid {
namespace {

std::string_view with_article(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::missing:
      return "nothing";
    case Value::Kind::null:
      return "null";
    case Value::Kind::boolean:
      return "a boolean";
    case Value::Kind::integer:
      return "an integer";
    case Value::Kind::number:
      return "a number";
    case Value::Kind::string:
      return "a string";
    case Value::Kind::array:
      return "an array";
    case Value::Kind::object:
      return "an object";
  }
  return {};
}

// Shortest text that reads back exactly.
template <class Number>
std::string number_text(Number value) {
  char buffer[32];
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), value);
  return {std::begin(buffer), result.ptr};
}

template <class Number>
std::string range_text(Number least, Number most, bool open_below, bool open_above) {
  if (open_above) return "of at least " + number_text(least);
  if (open_below) return "of at most " + number_text(most);
  return "from " + number_text(least) + " to " + number_text(most);
}

// Whether a text of unknown kind begins as a JSON object does: `{"` or `{}`.
bool looks_like_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos || text[first] != '{') return false;
  const std::size_t second = text.find_first_not_of(kSpace, first + 1);
  return second != std::string_view::npos && (text[second] == '"' || text[second] == '}');
}

[[noreturn]] void fail_missing(const Value& value) {
  value.fail("required key is missing", "add it");
}

[[noreturn]] void fail_kind(const Value& value, std::string_view expected) {
  if (!value.exists()) fail_missing(value);
  std::string message = "expected ";
  message += expected;
  message += ", found ";
  message += value.is_string() ? in_quotes(value.as_string()) : with_article(value.kind());
  value.fail(message);
}

}  // namespace

Value::Kind Value::kind() const {
  return node_ == DocumentNode::kNone ? Kind::missing : data_->nodes[node_].value_kind();
}

Value Value::operator[](std::string_view key) const {
  if (!is_object()) fail_kind(*this, "an object");
  const DocumentNode& node = data_->nodes[node_];
  const std::uint32_t number = data_->keys.find(data_->text, key);
  if (number != DocumentNode::kNone) {
    for (std::uint32_t i = node.low; i < node.low + node.high; ++i) {
      if (data_->nodes[i].key == number) return {data_, i, node_, {}};
    }
  }
  return {data_, DocumentNode::kNone, node_, key};
}

Value Value::operator[](std::size_t index) const {
  if (!is_array()) fail_kind(*this, "an array");
  const DocumentNode& node = data_->nodes[node_];
  if (index >= node.high) {
    fail("expected at least " + std::to_string(index + 1) + " elements, found " +
         std::to_string(node.high));
  }
  return {data_, node.low + static_cast<std::uint32_t>(index), node_, {}};
}

std::size_t Value::size() const {
  if (!is_array() && !is_object()) fail_kind(*this, "an array or an object");
  return data_->nodes[node_].high;
}

std::vector<std::pair<std::string_view, Value>> Value::members() const {
  if (!is_object()) fail_kind(*this, "an object");
  const DocumentNode& node = data_->nodes[node_];
  std::vector<std::pair<std::string_view, Value>> result;
  result.reserve(node.high);
  for (std::uint32_t i = node.low; i < node.low + node.high; ++i) {
    result.emplace_back(data_->key(data_->nodes[i].key), Value{data_, i, node_, {}});
  }
  return result;
}

std::vector<Value> Value::elements() const {
  if (!is_array()) fail_kind(*this, "an array");
  const DocumentNode& node = data_->nodes[node_];
  std::vector<Value> result;
  result.reserve(node.high);
  for (std::uint32_t i = node.low; i < node.low + node.high; ++i) {
    result.push_back(Value{data_, i, node_, {}});
  }
  return result;
}

bool Value::as_bool() const {
  if (kind() != Kind::boolean) fail_kind(*this, "true or false");
  return data_->nodes[node_].low != 0;
}

std::string_view Value::as_string() const {
  if (!is_string()) fail_kind(*this, "a string");
  const DocumentNode& node = data_->nodes[node_];
  return std::string_view(data_->text).substr(node.low, node.high);
}

double Value::as_double() const {
  if (!is_number()) fail_kind(*this, "a number");
  const DocumentNode& node = data_->nodes[node_];
  return kind() == Kind::integer ? static_cast<double>(node.integer()) : node.number();
}

double Value::as_double_in(double least, double most) const {
  const double value = as_double();
  if (value < least || value > most) {
    fail(number_text(value) + " is out of range",
         "give a number " + range_text(least, most, std::isinf(least), std::isinf(most)));
  }
  return value;
}

std::int64_t Value::as_int() const {
  if (!is_number()) fail_kind(*this, "an integer");
  const DocumentNode& node = data_->nodes[node_];
  if (kind() == Kind::integer) return node.integer();
  const double value = node.number();
  if (value != std::floor(value)) fail("expected an integer, found " + number_text(value));
  if (value < -0x1p63 || value >= 0x1p63) {
    fail("integer " + number_text(value) + " is out of range", "give one of less than 2^63");
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t Value::as_int_in(std::int64_t least, std::int64_t most) const {
  using T = std::int64_t;
  const T value = as_int();
  if (value < least || value > most) {
    fail(std::to_string(value) + " is out of range",
         "give an integer " + range_text(least, most, least == std::numeric_limits<T>::min(),
                                         most == std::numeric_limits<T>::max()));
  }
  return value;
}

double Value::as_quantity(Unit unit) const {
  const std::string example =
      "write it with its unit, such as \"" + std::string(quantity_example(unit)) + "\"";
  if (!exists()) fail_missing(*this);
  if (is_number()) fail(std::string(name_of_unit(unit)) + " without a unit", example);
  if (!is_string()) fail_kind(*this, name_of_unit(unit));
  const auto quantity = parse_quantity(as_string(), unit);
  if (!quantity)
    fail(in_quotes(as_string()) + " is not " + std::string(name_of_unit(unit)), example);
  if (const auto fault = implausible(*quantity, unit)) fail(fault->message, fault->remedy);
  return *quantity;
}

double Value::as_positive_quantity(Unit unit) const {
  const double quantity = as_quantity(unit);
  if (quantity == 0) fail(std::string(name_of_unit(unit)) + " of zero", "give one above zero");
  return quantity;
}

bool Value::bool_or(bool otherwise) const { return exists() && !is_null() ? as_bool() : otherwise; }

std::string Value::string_or(std::string_view otherwise) const {
  return std::string(exists() && !is_null() ? as_string() : otherwise);
}

double Value::double_or(double otherwise) const {
  return exists() && !is_null() ? as_double() : otherwise;
}

std::int64_t Value::int_or(std::int64_t otherwise) const {
  return exists() && !is_null() ? as_int() : otherwise;
}

void Value::expect_only(std::initializer_list<std::string_view> keys) const {
  expect_only(std::vector<std::string_view>(keys));
}

void Value::expect_only(const std::vector<std::string_view>& keys) const {
  if (!is_object()) fail_kind(*this, "an object");
  const DocumentNode& node = data_->nodes[node_];
  for (std::uint32_t i = node.low; i < node.low + node.high; ++i) {
    const std::string_view key = data_->key(data_->nodes[i].key);
    if (std::ranges::find(keys, key) != keys.end()) continue;
    Value{data_, i, node_, {}}.fail("unknown key", did_you_mean(key, keys));
  }
}

Where Value::where() const {
  Where where;
  where.file = data_->file;
  const std::uint32_t start = node_ == DocumentNode::kNone ? parent_ : node_;
  where.line = static_cast<int>(data_->nodes[start].line);
  std::vector<std::uint32_t> path;
  for (std::uint32_t at = start; at != data_->root; at = data_->nodes[at].parent) {
    path.push_back(at);
  }
  constexpr std::size_t kLongestKey = 80;
  const auto append_key = [&](std::string_view key) {
    if (!where.key.empty()) where.key += '.';
    where.key += abbreviated(key, kLongestKey);
  };
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const DocumentNode& node = data_->nodes[*at];
    if (node.key == DocumentNode::kNone) {
      where.key += "[" + std::to_string(*at - data_->nodes[node.parent].low) + "]";
    } else {
      append_key(data_->key(node.key));
    }
  }
  if (node_ == DocumentNode::kNone) append_key(missing_key_);
  return where;
}

void Value::fail(const std::string& message, const std::string& remedy) const {
  throw Error(where(), message, remedy);
}

Document::Document() : data_(std::make_unique<DocumentData>()) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Document Document::parse(std::string_view text, Syntax syntax, const std::string& file) {
  return parse_owned(std::string(text), syntax, file);
}

Document Document::parse_owned(std::string text, Syntax syntax, const std::string& file) {
  if (text.size() >= DocumentNode::kNone) throw Error(Where{file, 0, {}}, "the file is too large");
  Document document;
  document.data_->file = file;
  if (syntax == Syntax::json) {
    document.data_->text = std::move(text);
    read_json(*document.data_);
  } else {
    read_yaml(text, *document.data_);
  }
  return document;
}

Document Document::parse_file(const std::string& path) {
  std::string text = read_file(path);
  const bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  const bool json = path.ends_with(".json") || (!yaml && looks_like_json(text));
  return parse_owned(std::move(text), json ? Syntax::json : Syntax::yaml,
                     path == "-" ? "<stdin>" : path);
}

Value Document::root() const { return {data_.get(), data_->root, DocumentNode::kNone, {}}; }

const std::string& Document::file() const { return data_->file; }

}  // namespace braid
