#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// Arguments of a command line, "--name value …" or "--name=value". What a reader asks for counts
/// as known; unknown() lists the rest. Of an argument that is given twice the last counts, as with
/// Python's argparse, and `-` and `_` in names are one.
class GivenArguments {
 public:
  /// `words`: of the command, from the first argument on. `file` is named in errors.
  GivenArguments(std::span<const std::string> words, std::string file);

  bool has(std::string_view name);
  /// As has(), of an argument that nobody reads.
  bool is_given(std::string_view name) const { return given_.contains(key_of(name)); }
  /// Whether an argument is given without a value, as flags are.
  bool is_bare(std::string_view name) const;
  /// nullopt: not given. Throws Error where it is no whole number in [least, most].
  std::optional<std::int64_t> count(std::string_view name, std::int64_t least, std::int64_t most);
  std::int64_t count_or(std::string_view name, std::int64_t otherwise, std::int64_t least = 1);
  /// The values, joined by spaces; nullopt: not given. Throws Error where there are none.
  std::optional<std::string> text(std::string_view name);
  /// Says in which line of the file an argument is; errors that name it then say so too.
  void set_line(std::string_view name, int line);
  /// Says why the argument has no value, "$TP is not set", and what to do: errors for its lack then
  /// say so.
  void set_unknown_value(std::string_view name, std::string why, std::string remedy);
  /// Takes note of arguments that change nothing that is asked for here.
  void ignore(std::span<const std::string_view> names);
  /// As ignore(), of all that are given for whose name ("--lr", with dashes) that is true.
  void ignore_if(bool (*is_ignored)(std::string_view name));
  /// All arguments that nobody asked for or ignored, as they are written, in their order.
  std::vector<std::string> unknown() const;

  /// Throws Error that names the argument.
  [[noreturn]] void fail(std::string_view name, const std::string& message,
                         const std::string& remedy) const;

 private:
  static std::string key_of(std::string_view name);

  std::string file_;
  struct Given {
    std::string written;
    std::vector<std::string> values;
    int line = 0;
    std::string unknown, remedy;  ///< Why nobody knows its value, and what to do.
  };
  std::vector<std::string> order_;
  std::map<std::string, Given, std::less<>> given_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace braid
