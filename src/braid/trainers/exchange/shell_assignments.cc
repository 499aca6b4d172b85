#include "braid/trainers/exchange/shell_assignments.h"

#include <utility>

namespace braid {

/// NAME=word, NAME[KEY]=word, NAME+=word, NAME=(words), NAME+=(words).
bool ShellAssignments::read(bool exports) {
  const std::size_t begin = text_.position();
  std::size_t end = begin;
  const auto at = [&](std::size_t i) { return i < text_.end() ? text_.part(i, i + 1)[0] : '\0'; };
  if (!is_shell_name_start(at(end))) return false;
  while (is_shell_name_part(at(end))) ++end;
  std::string name(text_.part(begin, end));
  if (at(end) == '[') {
    const std::size_t close = text_.find("]", end);
    const std::string_view sign = text_.part(close + 1, close + 3);
    if (!sign.starts_with("=") && sign != "+=") return false;
    name += "[" + words_.expanded(end + 1, close) + "]";
    end = close + 1;
  }
  const bool adds = text_.part(end, end + 2) == "+=";
  if (!adds && at(end) != '=') return false;
  text_.move_to(end + (adds ? 2 : 1));
  const bool is_array = text_.is_at("(");
  ShellWords value = is_array ? read_array(name) : words_.read_undivided();
  if (value.empty() && !is_array) value = {""};
  if (exports) state_.exported.insert(name);
  assign(name, std::move(value), adds, is_array);
  return true;
}

ShellWords ShellAssignments::read_array(const std::string& name) {
  ShellWords value;
  text_.move(1);
  for (text_.skip_blank(true); !text_.is_at(")"); text_.skip_blank(true)) {
    if (text_.is_done()) text_.fail("the brackets of " + name + " are not closed");
    if (!read_element(name)) words_.read(value);
  }
  text_.move(1);
  return value;
}

/// "[KEY]=word" of an array by words.
bool ShellAssignments::read_element(const std::string& name) {
  if (!text_.is_at("[")) return false;
  const std::size_t begin = text_.position() + 1;
  const std::size_t close = text_.find("]=", begin);
  if (close >= text_.find("\n", begin)) return false;
  const std::string key = name + "[" + words_.expanded(begin, close) + "]";
  text_.move_to(close + 2);
  ShellWords value = words_.read_undivided();
  set_variable(key, std::move(value), state_);
  return true;
}

void ShellAssignments::assign(const std::string& name, ShellWords value, bool adds, bool is_array) {
  if (!adds) return set_variable(name, std::move(value), state_);
  const auto found = state_.variables.find(name);
  const ShellWords before = found == state_.variables.end() ? ShellWords{} : found->second;
  if (!is_array) {
    value = {joined(before) + joined(value)};
  } else {
    value.insert(value.begin(), before.begin(), before.end());
  }
  if (state_.is_unsure) note_name(name, state_.uncertain);
  set_variable(name, std::move(value), state_);
}

}  // namespace braid
