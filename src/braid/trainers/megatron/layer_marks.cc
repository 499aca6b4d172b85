#include "braid/trainers/megatron/layer_marks.h"

#include <algorithm>

namespace braid {
namespace {

constexpr std::int64_t kMostMarks = 1 << 16;

/// Sums and products of lists and numbers.
class MarkReader {
 public:
  explicit MarkReader(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    const std::optional<Term> all = sum(0);
    if (!all || !all->is_list || at_ != text_.size()) return std::nullopt;
    return all->marks;
  }

 private:
  struct Term {
    bool is_list = false;
    std::int64_t number = 0;
    std::string marks;
  };

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Term> sum(int depth) {
    std::optional<Term> left = product(depth);
    while (left && take('+')) {
      const std::optional<Term> right = product(depth);
      if (!right || right->is_list != left->is_list) return std::nullopt;
      left->number = std::min(kMostMarks, left->number + right->number);
      left->marks += right->marks;
      if (std::ssize(left->marks) > kMostMarks) return std::nullopt;
    }
    return left;
  }

  std::optional<Term> product(int depth) {
    std::optional<Term> left = factor(depth);
    while (left && take('*')) {
      const std::optional<Term> right = factor(depth);
      if (!right || (left->is_list && right->is_list)) return std::nullopt;
      const std::string& marks = left->is_list ? left->marks : right->marks;
      const std::int64_t times = left->is_list ? right->number : left->number;
      Term result{left->is_list || right->is_list, 0, ""};
      if (!result.is_list) {
        result.number = std::min(kMostMarks, left->number * right->number);
      } else if (times * std::max<std::int64_t>(1, std::ssize(marks)) > kMostMarks) {
        return std::nullopt;
      }
      for (std::int64_t i = 0; result.is_list && i < times; ++i) result.marks += marks;
      left = result;
    }
    return left;
  }

  std::optional<Term> factor(int depth) {
    constexpr int kMostDepth = 20;
    if (depth > kMostDepth) return std::nullopt;
    if (take('(')) {
      const std::optional<Term> inner = sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    Term term;
    if (take('[')) {
      term.is_list = true;
      while (!take(']')) {
        if (!take('0') && !take('1')) return std::nullopt;
        term.marks += text_[at_ - 1];
        const bool more = take(',');
        if (!more && (at_ == text_.size() || text_[at_] != ']')) return std::nullopt;
      }
      return term;
    }
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      term.number = std::min(kMostMarks, 10 * term.number + (text_[at_] - '0'));
    }
    return at_ > begin ? std::optional(term) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = std::min(kMostMarks, 10 * value + (c - '0'));
  }
  return value;
}

}  // namespace

std::optional<std::string> marks_of_blocks(std::string_view text, std::int64_t blocks) {
  if (const auto every = whole_number(text)) {
    if (*every == 0) return std::nullopt;
    std::string marks(static_cast<std::size_t>(blocks), '0');
    for (std::size_t b = 0; b < marks.size(); b += static_cast<std::size_t>(*every)) marks[b] = '1';
    return marks;
  }
  std::optional<std::string> marks = MarkReader(text).read();
  return marks && std::ssize(*marks) == blocks ? marks : std::nullopt;
}

}  // namespace braid
