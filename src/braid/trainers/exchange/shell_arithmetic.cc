#include "braid/trainers/exchange/shell_arithmetic.h"

#include <cctype>
#include <string>

namespace braid {
namespace {

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables)
      : text_(text), variables_(variables) {}

  std::optional<std::int64_t> value() {
    const auto result = sum(0);
    skip_spaces();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kMostDepth = 50;
  using Number = std::optional<std::int64_t>;

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Number sum(int depth) {
    Number left = product(depth);
    while (left) {
      std::int64_t result = 0;
      const bool plus = take('+');
      if (!plus && !take('-')) return left;
      const Number right = product(depth);
      if (!right) return std::nullopt;
      if (plus ? __builtin_add_overflow(*left, *right, &result)
               : __builtin_sub_overflow(*left, *right, &result)) {
        return std::nullopt;
      }
      left = result;
    }
    return left;
  }
  Number product(int depth) {
    Number left = factor(depth);
    while (left) {
      std::int64_t result = 0;
      const bool times = take('*');
      if (!times && !take('/')) return left;
      const Number right = factor(depth);
      if (!right || (!times && (*right == 0 || *right == -1))) return std::nullopt;
      if (times && __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      left = times ? result : *left / *right;
    }
    return left;
  }
  Number factor(int depth) {
    if (depth > kMostDepth) return std::nullopt;
    if (take('(')) {
      const Number inner = sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    take('$');
    const bool braced = take('{');
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_shell_name_part(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (braced && !take('}')) return std::nullopt;
    if (word.empty() || depth > kMostDepth) return std::nullopt;
    if (is_shell_name_start(word[0])) {
      const auto found = variables_.find(word);
      if (found == variables_.end() || found->second.size() != 1) return std::nullopt;
      return number(found->second.front());
    }
    return number(word);
  }
  static Number number(std::string_view text) {
    constexpr std::size_t kMostDigits = 18;
    if (text.empty() || text.size() > kMostDigits) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return std::nullopt;
      value = 10 * value + (c - '0');
    }
    return value;
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> value_of_arithmetic(std::string_view text,
                                                const ShellVariables& variables) {
  return Arithmetic(text, variables).value();
}

}  // namespace braid
