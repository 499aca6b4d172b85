#include "braid/trainers/exchange/shell_lists.h"

#include <utility>

namespace braid {

void ShellList::end_command(CommandEnd end) {
  if (std::exchange(negated_, false)) {
    if (end.is_taken) end.value = Holds::unknown;
    if (end.value != Holds::unknown) end.value = holds_if(end.value == Holds::no);
  }
  if (runs_ == Holds::yes) {
    now_ = end;
  } else if (runs_ == Holds::unknown) {
    // What did not run leaves what was known before it.
    const Holds decided = holds_if(!wants_success_);
    const bool is_decided = !end.is_taken && end.value == decided;
    now_ = {is_decided ? decided : Holds::unknown, false};
  }
  last_ = now_;
}

void ShellList::chain(bool wants_success) {
  wants_success_ = wants_success;
  runs_ = now_.value == Holds::unknown ? Holds::unknown
                                       : holds_if((now_.value == Holds::yes) == wants_success);
}

void ShellList::end() {
  runs_ = Holds::yes;
  wants_success_ = true;
  now_ = {Holds::yes, true};
}

}  // namespace braid
