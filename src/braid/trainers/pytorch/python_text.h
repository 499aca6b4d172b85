#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// The longest line that is written.
inline constexpr std::size_t kPythonColumns = 100;

/// Text as an identifier: other characters become `_`, and what Python keeps for itself gets one
/// more.
std::string python_name(std::string_view text);

/// "block" of "encoder.block12", as the name of a class: "EncoderBlock".
std::string class_name(std::string_view layer);

/// What every module has already under these names.
const std::set<std::string>& module_members();

/// Names of one scope, each given once.
class PythonNames {
 public:
  explicit PythonNames(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}
  /// `wanted`, with a number behind it where it is taken.
  std::string unique(const std::string& wanted);
  bool has(const std::string& name) const { return taken_.contains(name); }
  void release(const std::string& name) { taken_.erase(name); }

 private:
  std::set<std::string> taken_;
};

/// "a, b, c"
std::string joined(std::span<const std::string> items, std::string_view between = ", ");

/// "(3,)", "(3, 4)", "()"
std::string python_tuple(std::span<const std::int64_t> numbers);
std::string python_tuple(std::span<const std::string> items);

/// Ascending numbers, at least one: "[4]", "range(0, 8)", "range(0, 64, 8)" or a list.
std::string python_ranks(std::span<const std::int32_t> ranks);

/// `head(items)tail`, on several lines where one is too short for it. The first has `indent` spaces
/// already.
std::string python_call(std::string_view head, std::span<const std::string> items,
                        std::string_view tail, std::size_t indent);

/// A statement with `indent` spaces in front, on several lines where one is too long: broken behind
/// commas in brackets.
std::string python_statement(const std::string& text, std::size_t indent);

/// An expression whose text is these words, with a space behind each, told by what is repeated:
/// `3 * "F1 " + 5 * "F1 B1 " + 3 * "B1 "`; terms of it, to be joined by " + ".
std::vector<std::string> repeated_words(std::span<const std::string> words);

}  // namespace braid
