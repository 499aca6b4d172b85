#include "braid/trainers/exchange/shell_branches.h"

#include <algorithm>
#include <charconv>

namespace braid {
namespace {

std::optional<std::int64_t> integer(const std::string& word) {
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Text with signs that stand for any text.
bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

Holds compared(const std::string& left, const std::string& sign, const std::string& right) {
  if (sign == "=" || sign == "==" || sign == "!=") {
    return is_pattern(right) ? Holds::unknown : holds_if((left == right) == (sign != "!="));
  }
  const auto a = integer(left);
  const auto b = integer(right);
  if (!a || !b) return Holds::unknown;
  if (sign == "-eq") return holds_if(*a == *b);
  if (sign == "-ne") return holds_if(*a != *b);
  if (sign == "-lt") return holds_if(*a < *b);
  if (sign == "-le") return holds_if(*a <= *b);
  if (sign == "-gt") return holds_if(*a > *b);
  return sign == "-ge" ? holds_if(*a >= *b) : Holds::unknown;
}

/// Without blanks and quotes around it.
std::string_view bare(std::string_view text) {
  const auto is_outside = [](char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '(';
  };
  while (!text.empty() && is_outside(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_outside(text.back())) text.remove_suffix(1);
  return text;
}

/// Whether a pattern of `case` matches; unknown: it has signs that are not looked into.
Holds matches(std::string_view pattern, const std::optional<std::string>& subject) {
  if (pattern == "*") return Holds::yes;
  const bool is_plain = !is_pattern(pattern) && pattern.find('$') == std::string_view::npos;
  return subject && is_plain ? holds_if(pattern == *subject) : Holds::unknown;
}

}  // namespace

Holds value_of_test(std::span<const std::string> words) {
  if (words.size() == 1 && words[0] == "true") return Holds::yes;
  if (words.size() == 1 && words[0] == "false") return Holds::no;
  const bool single = words.size() > 2 && words.front() == "[" && words.back() == "]";
  const bool twice = words.size() > 2 && words.front() == "[[" && words.back() == "]]";
  if (!single && !twice) return Holds::unknown;
  words = words.subspan(1, words.size() - 2);
  const bool negated = words.size() > 1 && words[0] == "!";
  if (negated) words = words.subspan(1);
  Holds value = Holds::unknown;
  if (words.size() == 1) value = holds_if(!words[0].empty());
  if (words.size() == 2 && words[0] == "-z") value = holds_if(words[1].empty());
  if (words.size() == 2 && words[0] == "-n") value = holds_if(!words[1].empty());
  if (words.size() == 3) value = compared(words[0], words[1], words[2]);
  return value == Holds::unknown || !negated ? value : holds_if(value == Holds::no);
}

void ShellBranches::take(Branch& branch, Holds test) {
  if (branch.is_chosen || test == Holds::no) {
    branch.state = State::skipped;
  } else if (test == Holds::unknown || branch.is_unsure) {
    branch.state = State::unknown;
    branch.is_unsure = true;
    // What comes behind a branch that is always taken never runs.
    branch.is_chosen = test == Holds::yes;
  } else {
    branch.state = State::runs;
    branch.is_chosen = true;
  }
}

void ShellBranches::begin_if(Holds test) {
  Branch branch;
  take(branch, test);
  open_.push_back(branch);
}

void ShellBranches::begin_else(Holds test) {
  if (!open_.empty()) take(open_.back(), test);
}

void ShellBranches::begin_case(std::optional<std::string> subject) {
  Branch branch;
  branch.state = State::skipped;
  branch.is_case = branch.awaits_pattern = true;
  branch.subject = std::move(subject);
  open_.push_back(std::move(branch));
}

void ShellBranches::begin_arm(std::string_view patterns) {
  if (!awaits_pattern()) return;
  Branch& branch = open_.back();
  branch.awaits_pattern = false;
  Holds any = Holds::no;
  while (true) {
    const std::size_t end = patterns.find('|');
    const Holds one = matches(bare(patterns.substr(0, end)), branch.subject);
    if (one == Holds::yes || any == Holds::no) any = one;
    if (end == std::string_view::npos) break;
    patterns.remove_prefix(end + 1);
  }
  take(branch, any);
}

void ShellBranches::end_arm() {
  if (!is_case()) return;
  open_.back().state = State::skipped;
  open_.back().awaits_pattern = true;
}

void ShellBranches::begin_loop() { open_.emplace_back(); }

void ShellBranches::end() {
  if (!open_.empty()) open_.pop_back();
}

bool ShellBranches::is_skipped() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const Branch& branch) { return branch.state == State::skipped; });
}

bool ShellBranches::is_uncertain() const {
  return !is_skipped() && std::any_of(open_.begin(), open_.end(), [](const Branch& branch) {
    return branch.state == State::unknown;
  });
}

}  // namespace braid
