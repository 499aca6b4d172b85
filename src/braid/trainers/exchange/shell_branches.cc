#include "braid/trainers/exchange/shell_branches.h"

#include <algorithm>

#include "braid/trainers/exchange/shell_pattern.h"

namespace braid {
namespace {

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
  const bool is_plain = pattern.find_first_of("$(\\\"'`") == std::string_view::npos;
  if (!subject || !is_plain) return Holds::unknown;
  return holds_if(matches_shell_pattern(pattern, *subject));
}

}  // namespace

void ShellBranches::take(Branch& branch, Holds test) {
  if (branch.is_chosen || test == Holds::no) {
    branch.state = State::skipped;
  } else {
    branch.state = test == Holds::yes ? State::runs : State::unknown;
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

void ShellBranches::begin_test() {
  if (open_.empty()) return;
  Branch& branch = open_.back();
  branch.state = branch.is_chosen ? State::skipped : State::runs;
}

void ShellBranches::begin_loop(Holds runs) { begin_group(runs); }

void ShellBranches::begin_group(Holds runs) {
  Branch branch;
  branch.state = runs == Holds::yes  ? State::runs
                 : runs == Holds::no ? State::skipped
                                     : State::unknown;
  open_.push_back(std::move(branch));
}

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
