#include "braid/trainers/exchange/shell_values.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace braid {

std::string joined(const ShellWords& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::size_t> take_marks(std::string& text) {
  std::vector<std::size_t> numbers;
  std::string rest;
  constexpr std::size_t kLongest = 12;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == kMark
                                ? std::string_view(text).substr(at, kLongest).find(kMarkEnd)
                                : std::string_view::npos;
    if (end == std::string_view::npos) {
      if (text[at] != kNoWord) rest += text[at];
      ++at;
      continue;
    }
    std::size_t number = 0;
    std::from_chars(text.data() + at + 1, text.data() + at + end, number);
    numbers.push_back(number);
    at += end + 1;
  }
  text = std::move(rest);
  return numbers;
}

std::string without_marks(std::string text) {
  take_marks(text);
  return text;
}

bool has_marks(const ShellWords& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.find(kMark) != std::string::npos; });
}

void note_name(const std::string& name, std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void set_variable(const std::string& name, ShellWords value, ShellState& state) {
  if (state.is_skipped) return;
  ShellWords& stored = state.variables[name];
  if (state.is_unsure && stored != value) note_name(name, state.uncertain);
  state.of_loops.erase(name);
  stored = std::move(value);
}

}  // namespace braid
