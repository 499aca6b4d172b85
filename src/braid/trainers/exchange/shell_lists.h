#pragma once

#include "braid/trainers/exchange/shell_branches.h"

namespace braid {

/// How a command ended. Commands that are no tests are taken to succeed.
struct CommandEnd {
  Holds value = Holds::yes;
  bool is_taken = true;  ///< Nobody knows it.
};

/// Commands with && and || between them: which of them run, and whether all of it holds.
///
///     ShellList list;
///     list.end_command({Holds::no, false});  // [ 1 -gt 2 ]
///     list.chain(true);                      // &&
///     list.runs();                           // Holds::no
class ShellList {
 public:
  Holds runs() const { return runs_; }  ///< The command at hand.
  void negate() { negated_ = !negated_; }
  void end_command(CommandEnd end);
  void chain(bool wants_success);  ///< && (true) or ||.
  void end();                      ///< A further list begins.
  /// What the last list says as the test of a branch; unknown where that depends on a command.
  Holds condition() const { return last_.is_taken ? Holds::unknown : last_.value; }

 private:
  Holds runs_ = Holds::yes;
  bool wants_success_ = true;  ///< What the operator before the command wants of the ones before.
  bool negated_ = false;
  CommandEnd now_{Holds::yes, true}, last_{Holds::yes, true};
};

}  // namespace braid
