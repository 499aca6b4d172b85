#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A message of a protobuf text: fields in file order, each a scalar or a message. Scalars keep
/// their spelling; what they should be is known to the reader of the message alone.
struct ProtoField {
  std::string name;
  int line = 0;
  bool is_message = false;
  bool in_quotes = false;
  std::string scalar;
  std::vector<ProtoField> fields;
};

/// Parses a text in the protobuf text format: `name: scalar`, `name { … }`, `name: { … }`, fields
/// separated by white space, commas or semicolons, `#` comments; lists and extensions are not
/// taken. The root's name is the file. Throws Error with file and line: syntax, more than 20
/// levels, control characters in strings, texts over 64 MiB. Linear time.
ProtoField parse_text_proto(std::string_view text, const std::string& file);

/// Typed reads of a message's fields, which name file, line and key when something is wrong. A
/// field that occurs twice where one is wanted is an Error; so is one that no read or `ignore`
/// asked for, once `finish` is called.
class ProtoReader {
 public:
  /// `path` is what messages call this message.
  ProtoReader(const ProtoField& message, std::string path, std::string file);

  bool has(std::string_view name);
  /// A number in [least, most]; `otherwise` when absent.
  double number(std::string_view name, double otherwise, double least, double most);
  double required_number(std::string_view name, double least, double most);
  std::int64_t integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                       std::int64_t most);
  std::int64_t required_integer(std::string_view name, std::int64_t least, std::int64_t most);
  bool boolean(std::string_view name, bool otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  /// Index of the word among `words`; `otherwise` when absent.
  std::size_t word(std::string_view name, std::initializer_list<std::string_view> words,
                   std::size_t otherwise);
  /// The message of that name. Throws Error when absent.
  ProtoReader message(std::string_view name);
  std::vector<ProtoReader> messages(std::string_view name);
  /// Names of the fields that are messages, in file order.
  std::vector<std::string> message_names() const;

  void ignore(std::initializer_list<std::string_view> names);
  /// Throws Error for the first field that nothing asked for.
  void finish() const;
  [[noreturn]] void fail(std::string_view name, const std::string& message,
                         const std::string& remedy = {}) const;

 private:
  const ProtoField* find(std::string_view name);
  double parse(const ProtoField& field, double least, double most) const;
  const ProtoField& required(std::string_view name);
  [[noreturn]] void fail_at(int line, std::string_view name, const std::string& message,
                            const std::string& remedy = {}) const;

  const ProtoField* message_;
  std::string path_, file_;
  std::vector<std::string> asked_;
};

}  // namespace braid
