#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/trainers/exchange/import.h"
#include "braid/trainers/exchange/shell_script.h"

namespace braid {

/// read_shell_script() with the files that the script reads in, where `choice` has their text.
ShellScript read_script_with_sourced(std::string_view text, const std::string& file,
                                     const ImportChoice& choice);

/// Why an argument has no value, and what to do about it.
struct UnknownValue {
  std::string message, remedy;
};
/// `used`: "$TP", which nothing sets, or "$1", which whoever starts the script gives.
UnknownValue why_unknown(const std::string& used, const ShellScript& script);

/// Notes of what a script leaves open: `undefined`, which it uses and does not set, with the files
/// that it reads in, that may set it and that are not there, and what it sets under conditions that
/// are not known.
void note_what_is_open(const std::vector<std::string>& undefined, const ShellScript& script,
                       std::vector<std::string>& notes);

}  // namespace braid
