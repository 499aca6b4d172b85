#pragma once

#include <stdexcept>
#include <string>

namespace braid {

/// Where in the user's input something is wrong. Empty or zero parts are unknown and not printed.
struct Where {
  std::string file;
  int line = 0;
  std::string key;  ///< Path of the offending field, e.g. `levels[1].bandwidth`.
};

/// A mistake in the user's input: the one exception that rooms throw across their borders.
/// `what()` is a single line: `file:line: key: message; remedy`.
class Error : public std::runtime_error {
 public:
  /// `message` says what is wrong, `remedy` (may be empty) how to fix it.
  Error(const Where& where, const std::string& message, const std::string& remedy = {});
  explicit Error(const std::string& message, const std::string& remedy = {})
      : Error(Where{}, message, remedy) {}

  const Where& where() const { return where_; }

 private:
  Where where_;
};

}  // namespace braid
