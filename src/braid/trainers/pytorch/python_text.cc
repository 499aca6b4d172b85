#include "braid/trainers/pytorch/python_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",   "True",  "and",    "as",   "assert", "async",    "await",    "break",
    "class", "def",    "del",   "elif",   "else", "except", "continue", "finally",  "for",
    "from",  "global", "if",    "import", "in",   "is",     "lambda",   "nonlocal", "not",
    "or",    "pass",   "raise", "return", "try",  "while",  "with",     "yield"};

/// The longest repeated pattern that is looked for.
constexpr std::size_t kLongestPattern = 256;

bool is_word_character(char c) {
  return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct Repetition {
  std::size_t length = 1, times = 1;
  std::size_t covers() const { return length * times; }
};

/// The pattern from `first` on that covers most words by repeating; of equal ones the shortest.
Repetition best_repetition(std::span<const std::string> words, std::size_t first) {
  Repetition best;
  for (std::size_t length = 1; length <= kLongestPattern && first + 2 * length <= words.size();
       ++length) {
    std::size_t end = first + length;
    while (end < words.size() && words[end] == words[end - length]) ++end;
    const std::size_t times = (end - first) / length;
    if (times > 1 && times * length > best.covers()) best = {length, times};
  }
  return best;
}

}  // namespace

std::string python_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += is_word_character(c) ? c : '_';
  if (name.empty() || is_digit(name.front())) name.insert(name.begin(), '_');
  if (std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end()) name += '_';
  return name;
}

std::string class_name(std::string_view layer) {
  std::string name;
  bool starts_word = true;
  for (const char c : layer) {
    if (!is_word_character(c) || c == '_' || is_digit(c)) {
      starts_word = true;
      continue;
    }
    name += starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts_word = false;
  }
  return name.empty() ? "Layer" : python_name(name);
}

const std::set<std::string>& module_members() {
  static const std::set<std::string> all = {"T_destination",
                                            "add_module",
                                            "apply",
                                            "attend",
                                            "bfloat16",
                                            "buffers",
                                            "call_super_init",
                                            "children",
                                            "compile",
                                            "cpu",
                                            "cuda",
                                            "double",
                                            "dump_patches",
                                            "eval",
                                            "float",
                                            "forward",
                                            "half",
                                            "modules",
                                            "parameters",
                                            "register_buffer",
                                            "state_dict",
                                            "to",
                                            "train",
                                            "training",
                                            "type",
                                            "zero_grad"};
  return all;
}

std::string PythonNames::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; !taken_.insert(name).second; ++number) {
    name = fmt::format("{}{}{}", wanted, is_digit(wanted.back()) ? "_" : "", number);
  }
  return name;
}

std::string joined(std::span<const std::string> items, std::string_view between) {
  std::string text;
  for (const std::string& each : items) {
    if (!text.empty()) text += between;
    text += each;
  }
  return text;
}

std::string python_tuple(std::span<const std::string> items) {
  return items.size() == 1 ? "(" + items.front() + ",)" : "(" + joined(items) + ")";
}

std::string python_tuple(std::span<const std::int64_t> numbers) {
  std::vector<std::string> items;
  for (const std::int64_t each : numbers) items.push_back(std::to_string(each));
  return python_tuple(items);
}

std::string python_ranks(std::span<const std::int32_t> ranks) {
  const std::int32_t step = ranks.size() > 1 ? ranks[1] - ranks[0] : 1;
  bool even = ranks.size() > 2;
  for (std::size_t i = 1; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == step;
  if (even && step == 1) return fmt::format("range({}, {})", ranks.front(), ranks.back() + 1);
  if (even) return fmt::format("range({}, {}, {})", ranks.front(), ranks.back() + 1, step);
  return fmt::format("[{}]", fmt::join(ranks, ", "));
}

std::string python_call(std::string_view head, std::span<const std::string> items,
                        std::string_view tail, std::size_t indent) {
  const std::string inner = joined(items);
  if (indent + head.size() + inner.size() + tail.size() + 2 <= kPythonColumns) {
    return fmt::format("{}({}){}", head, inner, tail);
  }
  const std::string margin(indent + 4, ' ');
  std::string text = fmt::format("{}(\n", head);
  if (margin.size() + inner.size() + 1 <= kPythonColumns) {
    text += margin + inner + "\n";
  } else {
    for (const std::string& each : items) text += python_statement(each + ",", margin.size());
  }
  return text + std::string(indent, ' ') + ")" + std::string(tail);
}

std::string python_statement(const std::string& text, std::size_t indent) {
  const std::string margin(indent, ' ');
  if (indent + text.size() <= kPythonColumns) return margin + text + "\n";
  std::string result, line = margin;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : 0;
    depth -= text[i] == ')' || text[i] == ']' ? 1 : 0;
    const bool may_break = depth > 0 && text[i] == ' ' && i > 0 && text[i - 1] == ',';
    if (!may_break && i + 1 < text.size()) continue;
    const std::string piece = text.substr(start, i + 1 - start);
    if (line.size() + piece.size() > kPythonColumns + 1 && line.size() > margin.size() + 4) {
      line.pop_back();  // The space behind the comma.
      result += line + "\n";
      line = margin + "    ";
    }
    line += piece;
    start = i + 1;
  }
  return result + line + "\n";
}

std::vector<std::string> repeated_words(std::span<const std::string> words) {
  std::vector<std::string> terms;
  std::string once;
  const auto end_once = [&] {
    if (!once.empty()) terms.push_back('"' + once + '"');
    once.clear();
  };
  for (std::size_t i = 0; i < words.size();) {
    const Repetition best = best_repetition(words, i);
    if (best.times == 1) {
      if (once.size() + words[i].size() + 8 > kPythonColumns) end_once();
      once += words[i] + " ";
    } else {
      end_once();
      const std::vector<std::string> pattern = repeated_words(words.subspan(i, best.length));
      const std::string text = joined(pattern, " + ");
      const bool is_one = pattern.size() == 1 && text.front() == '"';
      terms.push_back(fmt::format("{} * {}", best.times, is_one ? text : "(" + text + ")"));
    }
    i += best.covers();
  }
  end_once();
  return terms;
}

}  // namespace braid
