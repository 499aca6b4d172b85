#pragma once

#include <string>
#include <vector>

#include "braid/trainers/exchange/shell_script.h"

namespace braid {

/// Notes of what a script leaves open: `undefined`, which it uses and does not set, with the files
/// that it reads in and that may set it, and what it sets under conditions that are not known.
void note_what_is_open(const std::vector<std::string>& undefined, const ShellScript& script,
                       std::vector<std::string>& notes);

}  // namespace braid
