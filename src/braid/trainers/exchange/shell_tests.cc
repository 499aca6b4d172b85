#include "braid/trainers/exchange/shell_tests.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "braid/trainers/exchange/shell_pattern.h"
#include "braid/trainers/exchange/shell_values.h"

namespace braid {
namespace {

std::optional<std::int64_t> integer(const std::string& word) {
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

Holds negated(Holds value) {
  return value == Holds::unknown ? value : holds_if(value == Holds::no);
}
Holds both(Holds a, Holds b) {
  if (a == Holds::no || b == Holds::no) return Holds::no;
  return a == Holds::yes && b == Holds::yes ? Holds::yes : Holds::unknown;
}
Holds either(Holds a, Holds b) { return negated(both(negated(a), negated(b))); }

/// A test from left to right, of which && binds tighter than ||.
class Test {
 public:
  /// `extended`: it stands in double brackets.
  Test(std::span<const std::string> words, bool extended) : words_(words), extended_(extended) {}

  Holds value() {
    const Holds result = any();
    return at_ == words_.size() && depth_ < kMostDepth ? result : Holds::unknown;
  }

 private:
  static constexpr int kMostDepth = 50;

  bool take(const char* word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  bool is_end() const {
    if (at_ >= words_.size()) return true;
    const std::string& word = words_[at_];
    return word == ")" || (extended_ ? word == "&&" || word == "||" : word == "-a" || word == "-o");
  }

  Holds any() {
    Holds result = all();
    while (take(extended_ ? "||" : "-o")) result = either(result, all());
    return result;
  }
  Holds all() {
    Holds result = one();
    while (take(extended_ ? "&&" : "-a")) result = both(result, one());
    return result;
  }
  Holds one() {
    if (++depth_ >= kMostDepth) {
      at_ = words_.size();
      return Holds::unknown;
    }
    Holds result = Holds::unknown;
    if (take("!")) {
      result = negated(one());
    } else if (take("(")) {
      result = any();
      if (!take(")")) result = Holds::unknown;
    } else {
      result = primary();
    }
    --depth_;
    return result;
  }

  Holds primary() {
    const std::size_t begin = at_;
    while (!is_end()) ++at_;
    const auto words = words_.subspan(begin, at_ - begin);
    const bool is_known = !has_marks(ShellWords(words.begin(), words.end()));
    if (!is_known) return Holds::unknown;
    if (extended_) return value_of(with_empty_words(words));
    return value_of(ShellWords(words.begin(), words.end()));
  }

  static bool compares(const std::string& word) {
    return word == "=" || word == "==" || word == "!=" || word == "<" || word == ">" ||
           compares_numbers(word);
  }
  static bool compares_numbers(const std::string& word) {
    return word == "-eq" || word == "-ne" || word == "-lt" || word == "-le" || word == "-gt" ||
           word == "-ge";
  }

  /// In double brackets what is empty is a word all the same, but has been left out: of "-n $X",
  /// "$X == y" and "x == $X".
  static ShellWords with_empty_words(std::span<const std::string> words) {
    ShellWords all(words.begin(), words.end());
    if (all.size() == 1 && (all[0] == "-n" || all[0] == "-z")) all.emplace_back();
    if (all.size() <= 2 && !all.empty() && compares(all[0])) all.emplace(all.begin());
    if (all.size() == 2 && compares(all[1])) all.emplace_back();
    return all;
  }

  Holds value_of(const ShellWords& words) const {
    if (words.empty()) return Holds::no;
    if (words.size() == 1) return holds_if(!words[0].empty());
    if (words.size() == 2 && words[0] == "-z") return holds_if(words[1].empty());
    if (words.size() == 2 && words[0] == "-n") return holds_if(!words[1].empty());
    // Of "[ $X = y ]" whose variable is empty: an error, which does not hold.
    if (words.size() == 2 && (compares(words[0]) || compares(words[1]))) return Holds::no;
    return words.size() == 3 ? compared(words[0], words[1], words[2]) : Holds::unknown;
  }

  Holds compared(const std::string& left, const std::string& sign, const std::string& right) const {
    if (sign == "=" || sign == "==" || sign == "!=") {
      const bool equal = extended_ ? matches_shell_pattern(right, left) : left == right;
      return holds_if(equal == (sign != "!="));
    }
    if (extended_ && sign == "<") return holds_if(left < right);
    if (extended_ && sign == ">") return holds_if(left > right);
    if (!extended_ && compares_numbers(sign) && (left.empty() || right.empty())) return Holds::no;
    // What is empty is 0 in double brackets.
    const auto a = integer(left.empty() ? "0" : left);
    const auto b = integer(right.empty() ? "0" : right);
    if (!a || !b) return Holds::unknown;
    if (sign == "-eq") return holds_if(*a == *b);
    if (sign == "-ne") return holds_if(*a != *b);
    if (sign == "-lt") return holds_if(*a < *b);
    if (sign == "-le") return holds_if(*a <= *b);
    if (sign == "-gt") return holds_if(*a > *b);
    return sign == "-ge" ? holds_if(*a >= *b) : Holds::unknown;
  }

  std::span<const std::string> words_;
  bool extended_ = false;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Holds value_of_test(std::span<const std::string> words) {
  if (!words.empty() && words.front() == "test") return Test(words.subspan(1), false).value();
  const bool single = words.size() > 1 && words.front() == "[" && words.back() == "]";
  const bool twice = words.size() > 1 && words.front() == "[[" && words.back() == "]]";
  if (!single && !twice) return Holds::unknown;
  return Test(words.subspan(1, words.size() - 2), twice).value();
}

}  // namespace braid
