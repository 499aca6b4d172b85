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

std::optional<bool> compared(const std::string& left, const std::string& sign,
                             const std::string& right) {
  if (sign == "=" || sign == "==" || sign == "!=") {
    if (is_pattern(right)) return std::nullopt;
    return (left == right) == (sign != "!=");
  }
  const auto a = integer(left);
  const auto b = integer(right);
  if (!a || !b) return std::nullopt;
  if (sign == "-eq") return *a == *b;
  if (sign == "-ne") return *a != *b;
  if (sign == "-lt") return *a < *b;
  if (sign == "-le") return *a <= *b;
  if (sign == "-gt") return *a > *b;
  if (sign == "-ge") return *a >= *b;
  return std::nullopt;
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

/// Whether a pattern of `case` matches; nullopt: it has signs that are not looked into.
std::optional<bool> matches(std::string_view pattern, const std::string& subject) {
  if (pattern == "*") return true;
  if (is_pattern(pattern) || pattern.find('$') != std::string_view::npos) return std::nullopt;
  return pattern == subject;
}

}  // namespace

std::optional<bool> value_of_test(std::span<const std::string> words) {
  if (words.size() == 1 && words[0] == "true") return true;
  if (words.size() == 1 && words[0] == "false") return false;
  const bool single = words.size() > 2 && words.front() == "[" && words.back() == "]";
  const bool twice = words.size() > 2 && words.front() == "[[" && words.back() == "]]";
  if (!single && !twice) return std::nullopt;
  words = words.subspan(1, words.size() - 2);
  const bool negated = words.size() > 1 && words[0] == "!";
  if (negated) words = words.subspan(1);
  std::optional<bool> value;
  if (words.size() == 1) value = !words[0].empty();
  if (words.size() == 2 && words[0] == "-z") value = words[1].empty();
  if (words.size() == 2 && words[0] == "-n") value = !words[1].empty();
  if (words.size() == 3) value = compared(words[0], words[1], words[2]);
  return value && negated ? !*value : value;
}

void ShellBranches::take(Branch& branch, std::optional<bool> holds) {
  if (branch.is_chosen || (holds && !*holds)) {
    branch.state = State::skipped;
  } else if (!holds || branch.is_unsure) {
    branch.state = State::unknown;
    branch.is_unsure = true;
    // What comes behind a branch that is always taken never runs.
    branch.is_chosen = holds.has_value();
  } else {
    branch.state = State::runs;
    branch.is_chosen = true;
  }
}

void ShellBranches::begin_if(std::optional<bool> holds) {
  Branch branch;
  take(branch, holds);
  open_.push_back(branch);
}

void ShellBranches::begin_else(std::optional<bool> holds) {
  if (!open_.empty()) take(open_.back(), holds);
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
  std::optional<bool> holds = false;
  while (true) {
    const std::size_t end = patterns.find('|');
    const std::string_view pattern = bare(patterns.substr(0, end));
    const std::optional<bool> one = pattern == "*"    ? std::optional(true)
                                    : !branch.subject ? std::nullopt
                                                      : matches(pattern, *branch.subject);
    if (one.value_or(false)) holds = true;
    if (!one && holds && !*holds) holds = std::nullopt;
    if (end == std::string_view::npos) break;
    patterns.remove_prefix(end + 1);
  }
  take(branch, holds);
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
