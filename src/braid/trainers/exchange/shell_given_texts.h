#pragma once

#include <string>
#include <vector>

#include "braid/trainers/exchange/shell_text.h"

namespace braid {

/// Texts that << gives to commands of a script.
class ShellGivenTexts {
 public:
  /// Takes note of words such as <<EOF, <<-"EOF", << EOF.
  void note(std::string word);
  /// Skips what << gives to the command at hand, from the end of its line, which is here, to the
  /// line that ends it. What is a script itself is read as if it stood there.
  void skip(ShellText& text);

 private:
  std::vector<std::string> ends_;  ///< Lines that end the texts.
  bool awaits_end_ = false;        ///< Behind << that stands alone.
};

}  // namespace braid
