#pragma once

#include <string>

#include "braid/trainers/exchange/shell_text.h"
#include "braid/trainers/exchange/shell_values.h"
#include "braid/trainers/exchange/shell_words.h"

namespace braid {

/// Reads assignments of a script.
class ShellAssignments {
 public:
  ShellAssignments(ShellText& text, ShellWordReader& words, ShellState& state)
      : text_(text), words_(words), state_(state) {}

  /// Carries out the assignment that begins here; false: none does. `exports`: it is behind export.
  bool read(bool exports);

 private:
  ShellWords read_array(const std::string& name);
  bool read_element(const std::string& name);
  void assign(const std::string& name, ShellWords value, bool adds, bool is_array);

  ShellText& text_;
  ShellWordReader& words_;
  ShellState& state_;
};

}  // namespace braid
