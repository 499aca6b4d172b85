#include "braid/trainers/exchange/shell_arithmetic.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

namespace braid {
namespace {

using Number = std::optional<std::int64_t>;

struct BinaryOperator {
  std::string_view sign;
  int rank;  ///< Higher ones bind tighter.
};
// Longer signs come first.
constexpr BinaryOperator kBinary[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6},  {"<=", 7},
                                      {">=", 7}, {"<<", 8}, {">>", 8}, {"**", 11}, {"|", 3},
                                      {"^", 4},  {"&", 5},  {"<", 7},  {">", 7},   {"+", 9},
                                      {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
constexpr int kPower = 11;

Number power_of(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  std::int64_t result = 1;
  constexpr std::int64_t kMostSteps = 64;
  if (exponent > kMostSteps && (base > 1 || base < -1)) return std::nullopt;
  if (exponent > kMostSteps) exponent = kMostSteps + exponent % 2;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  return result;
}

Number arithmetic_of(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  constexpr std::int64_t kBits = 62;
  if (sign == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (sign == "/" || sign == "%") {
    if (b == 0 || b == -1) {
      if (b == 0 || a == INT64_MIN) return std::nullopt;
      return sign == "/" ? -a : 0;
    }
    result = sign == "/" ? a / b : a % b;
  } else if (sign == "**") {
    return power_of(a, b);
  } else if (sign == "<<" || sign == ">>") {
    if (b < 0 || b > kBits || a < 0) return std::nullopt;
    if (sign == ">>") return a >> b;
    overflows = a > (INT64_MAX >> b);
    result = overflows ? 0 : a << b;
  }
  return overflows ? std::nullopt : Number(result);
}

Number value_of_operator(std::string_view sign, std::int64_t a, std::int64_t b) {
  if (sign == "||") return a != 0 || b != 0 ? 1 : 0;
  if (sign == "&&") return a != 0 && b != 0 ? 1 : 0;
  if (sign == "==") return a == b ? 1 : 0;
  if (sign == "!=") return a != b ? 1 : 0;
  if (sign == "<=") return a <= b ? 1 : 0;
  if (sign == ">=") return a >= b ? 1 : 0;
  if (sign == "<") return a < b ? 1 : 0;
  if (sign == ">") return a > b ? 1 : 0;
  if (sign == "|") return a | b;
  if (sign == "^") return a ^ b;
  if (sign == "&") return a & b;
  return arithmetic_of(sign, a, b);
}

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables, int depth,
             std::vector<std::pair<std::string, std::int64_t>>& assigned)
      : text_(text), variables_(variables), depth_(depth), assigned_(assigned) {}

  Number value() {
    Number result = list();
    skip_spaces();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kMostDepth = 50;

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(std::string_view sign) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  /// Expressions with commas between them, of which the last counts.
  Number list() {
    skip_spaces();
    if (at_ == text_.size()) return 0;
    Number result = choice();
    while (result && take(",")) result = choice();
    return result;
  }

  /// "a ? b : c", of which only what is chosen sets something.
  Number choice() {
    if (++depth_ > kMostDepth) return std::nullopt;
    Number result = binary(1);
    if (result && take("?")) {
      const bool first = *result != 0;
      const Number yes = in_branch(first);
      if (!yes || !take(":")) return std::nullopt;
      const Number no = in_branch(!first);
      if (!no) return std::nullopt;
      result = first ? yes : no;
    }
    --depth_;
    return result;
  }
  Number in_branch(bool is_taken) {
    if (!is_taken) ++skipped_;
    Number result = choice();
    if (!is_taken) --skipped_;
    return result;
  }

  /// The operator that comes next, if it binds as tight as `rank`.
  const BinaryOperator* next_operator(int rank) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    const auto* found =
        std::find_if(std::begin(kBinary), std::end(kBinary),
                     [&](const BinaryOperator& each) { return rest.starts_with(each.sign); });
    return found == std::end(kBinary) || found->rank < rank ? nullptr : found;
  }

  Number binary(int rank) {
    if (++depth_ > kMostDepth) return std::nullopt;
    Number left = unary();
    while (left) {
      const BinaryOperator* found = next_operator(rank);
      if (found == nullptr) break;
      at_ += found->sign.size();
      const bool decides =
          (found->sign == "||" && *left != 0) || (found->sign == "&&" && *left == 0);
      if (decides) ++skipped_;
      const Number right = binary(found->rank == kPower ? kPower : found->rank + 1);
      if (decides) --skipped_;
      if (!right) return std::nullopt;
      left = value_of_operator(found->sign, *left, *right);
      if (!left && skipped_ > 0) left = 0;
    }
    --depth_;
    return left;
  }

  Number unary() {
    if (++depth_ > kMostDepth) return std::nullopt;
    Number result;
    if (take("++") || take("--")) {
      const std::int64_t step = text_[at_ - 1] == '+' ? 1 : -1;
      const std::string name = read_name();
      const Number now = name.empty() ? std::nullopt : of_variable(name);
      result = now ? set(name, value_of_operator("+", *now, step)) : std::nullopt;
    } else if (take("!")) {
      const Number of = unary();
      if (of) result = *of == 0 ? 1 : 0;
    } else if (take("~")) {
      const Number of = unary();
      if (of) result = ~*of;
    } else if (take("-")) {
      const Number of = unary();
      if (of) result = value_of_operator("-", 0, *of);
    } else if (take("+")) {
      result = unary();
    } else {
      result = operand();
    }
    --depth_;
    return result;
  }

  std::string read_name() {
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_shell_name_part(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Number operand() {
    if (take("(")) {
      const Number inner = list();
      return take(")") ? inner : std::nullopt;
    }
    take("$");
    const bool braced = take("{");
    const std::string word = read_name();
    if (word.empty() || (braced && !take("}"))) return std::nullopt;
    return is_shell_name_start(word[0]) ? variable(word) : number(word);
  }

  /// A variable, perhaps with what sets it.
  Number variable(const std::string& name) {
    if (take("++") || take("--")) {
      const std::int64_t step = text_[at_ - 1] == '+' ? 1 : -1;
      const Number now = of_variable(name);
      if (now && !set(name, value_of_operator("+", *now, step))) return std::nullopt;
      return now;
    }
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("=") && !rest.starts_with("==")) {
      ++at_;
      return set(name, choice());
    }
    for (const std::string_view sign : {"<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"}) {
      if (!rest.starts_with(sign) || rest.substr(sign.size(), 1) != "=") continue;
      at_ += sign.size() + 1;
      const Number now = of_variable(name);
      const Number by = choice();
      return now && by ? set(name, value_of_operator(sign, *now, *by)) : std::nullopt;
    }
    return of_variable(name);
  }

  Number set(const std::string& name, Number value) {
    if (value && skipped_ == 0) assigned_.emplace_back(name, *value);
    return value;
  }

  Number of_variable(const std::string& name) {
    const auto set_here = std::find_if(assigned_.rbegin(), assigned_.rend(),
                                       [&](const auto& each) { return each.first == name; });
    if (set_here != assigned_.rend()) return set_here->second;
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.size() > 1) return std::nullopt;
    const std::string text = found->second.empty() ? "" : found->second.front();
    if (const Number plain = number(text)) return plain;
    constexpr int kEach = 10;  // Levels that a variable in a variable counts for.
    if (depth_ + kEach > kMostDepth) return std::nullopt;
    return Arithmetic(text, variables_, depth_ + kEach, assigned_).value();
  }

  static Number number(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
      base = 16;
      text.remove_prefix(2);
    } else if (text.size() > 1 && text.front() == '0') {
      base = 8;
    }
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int skipped_ = 0;  ///< Parts that are read and not carried out.
  std::vector<std::pair<std::string, std::int64_t>>& assigned_;
};

}  // namespace

std::optional<ArithmeticValue> value_of_arithmetic(std::string_view text,
                                                   const ShellVariables& variables) {
  ArithmeticValue result;
  const Number value = Arithmetic(text, variables, 0, result.assigned).value();
  if (!value) return std::nullopt;
  result.value = *value;
  return result;
}

}  // namespace braid
