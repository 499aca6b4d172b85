#include "braid/trainers/exchange/shell_given_texts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "braid/base/text.h"
#include "braid/trainers/exchange/shell_values.h"

namespace braid {

void ShellGivenTexts::skip(ShellText& text) {
  for (const std::string& mark : ends_) {
    const std::size_t first = text.position() + 1;
    std::size_t begin = first;
    while (begin < text.end()) {
      const std::size_t end = text.find("\n", begin);
      std::string_view line = text.part(begin, end);
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      begin = end + 1;
      if (line == mark) break;
    }
    begin = std::min(begin, text.end());
    const std::string_view body = text.part(std::min(first, begin), begin);
    if (body.starts_with("#!") || contains(body, ".py") || contains(body, "torchrun ")) break;
    text.move_to(begin - 1);
  }
  ends_.clear();
}

void ShellGivenTexts::note(std::string word) {
  if (!std::exchange(awaits_end_, false)) {
    if (!word.starts_with("<<") || word.starts_with("<<<")) return;
    word.erase(0, word.starts_with("<<-") ? 3 : 2);
  }
  awaits_end_ = word.empty();
  if (!word.empty()) ends_.push_back(without_marks(word));
}

}  // namespace braid
