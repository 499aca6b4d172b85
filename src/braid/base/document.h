#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/base/error.h"

namespace braid {

/// A JSON or YAML text as a read-only tree whose every node knows its line, so that readers can
/// say where a mistake is. Readers are written once against `Value` and accept both syntaxes.
///
///     Document document = Document::parse_file("chip.yaml");
///     Value root = document.root();
///     std::string name = root["name"].as_string();
///     double bandwidth = root["bandwidth"].as_quantity(Unit::bytes_per_s);
///     root.expect_only({"name", "bandwidth"});
///
/// Rejected while parsing, with file and line: syntax errors, trailing text, duplicate keys,
/// invalid UTF-8, numbers that do not fit (1e400), nesting deeper than 200, YAML aliases and tags,
/// YAML texts larger than 32 MiB (JSON texts may have 4 GiB; they take 20 bytes a node on top of
/// the text).
class Document;

enum class Unit : std::uint8_t {
  bytes,
  bytes_per_s,
  seconds,
  flops_per_s,
  watts,
  usd,
  hertz,
  metres2,
  joules
};

/// A node of a Document; cheap to copy, valid as long as the Document lives.
class Value {
 public:
  enum class Kind : std::uint8_t { missing, null, boolean, integer, number, string, array, object };

  Kind kind() const;
  /// False for a key that the object does not have.
  bool exists() const { return kind() != Kind::missing; }
  bool is_null() const { return kind() == Kind::null; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::number; }

  /// Member of an object; a missing Value if absent (its accessors then raise "missing key").
  /// Throws Error when this is not an object. Cost: a scan of the object's keys.
  Value operator[](std::string_view key) const;
  /// Element of an array. Throws Error when this is not an array or the index is out of range.
  Value operator[](std::size_t index) const;
  /// Number of elements or members. Throws Error when this is neither array nor object.
  std::size_t size() const;
  /// Members in file order. Throws Error when this is not an object.
  std::vector<std::pair<std::string_view, Value>> members() const;
  /// Elements in order. Throws Error when this is not an array.
  std::vector<Value> elements() const;

  // Typed reads. Each throws Error with file, line and key when the value is missing, of another
  // kind, or out of range. NaN and infinities are never returned.
  bool as_bool() const;
  std::string_view as_string() const;
  double as_double() const;
  double as_double_in(double least, double most) const;
  /// An integer; a number with an integral value that fits is accepted (8.0, 1e3).
  std::int64_t as_int() const;
  std::int64_t as_int_in(std::int64_t least, std::int64_t most) const;
  /// A quantity with a unit ("80 GiB", "900 GB/s", "5 us"), in the SI base unit (bytes, bytes/s, s
  /// …). An Error: no unit, less than zero, above zero and not in plausible_range (quantity.h).
  double as_quantity(Unit unit) const;
  /// As as_quantity, but zero is an Error too.
  double as_positive_quantity(Unit unit) const;

  // As the typed reads, but `otherwise` when the value is missing or null.
  bool bool_or(bool otherwise) const;
  std::string string_or(std::string_view otherwise) const;
  double double_or(double otherwise) const;
  std::int64_t int_or(std::int64_t otherwise) const;

  /// Throws Error naming the first member of this object that is not in `keys`, with the nearest
  /// known key as the remedy.
  void expect_only(std::initializer_list<std::string_view> keys) const;
  void expect_only(const std::vector<std::string_view>& keys) const;

  Where where() const;
  /// Throws Error{where(), message, remedy}.
  [[noreturn]] void fail(const std::string& message, const std::string& remedy = {}) const;

 private:
  friend class Document;
  friend struct DocumentData;
  Value(const struct DocumentData* data, std::uint32_t node, std::uint32_t parent,
        std::string_view missing_key)
      : data_(data), node_(node), parent_(parent), missing_key_(missing_key) {}

  const struct DocumentData* data_;
  std::uint32_t node_;            ///< Index of the node; all ones when missing.
  std::uint32_t parent_;          ///< For a missing value: the object that lacks it.
  std::string_view missing_key_;  ///< For a missing value: its key, as the caller gave it.
};

class Document {
 public:
  enum class Syntax : std::uint8_t { json, yaml };

  /// Parses `text`; `file` is used in error messages. Throws Error. Linear time.
  static Document parse(std::string_view text, Syntax syntax, const std::string& file);
  /// Reads and parses a file (`-`: standard input): `.json` as JSON, `.yaml` and `.yml` as YAML,
  /// others as JSON when they begin with `{"`, else as YAML. Throws Error.
  static Document parse_file(const std::string& path);

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  Value root() const;
  const std::string& file() const;

 private:
  Document();
  static Document parse_owned(std::string text, Syntax syntax, const std::string& file);

  std::unique_ptr<struct DocumentData> data_;
};

}  // namespace braid
