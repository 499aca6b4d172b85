#include "braid/trainers/exchange/own_options.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace braid {
namespace {

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// As trainers read names: `-` and `_` are one.
bool is_same(char a, char b) {
  return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

/// Where the name stands last as a whole word, outside of lines that are comments; npos: nowhere.
std::size_t last_place(std::string_view text, std::string_view name) {
  std::size_t last = std::string_view::npos;
  for (auto at = text.begin();; ++at) {
    at = std::search(at, text.end(), name.begin(), name.end(), is_same);
    if (at == text.end()) return last;
    const auto begin = static_cast<std::size_t>(at - text.begin());
    const std::size_t end = begin + name.size();
    if ((begin > 0 && is_part_of_name(text[begin - 1])) ||
        (end < text.size() && is_part_of_name(text[end]))) {
      continue;
    }
    const std::size_t line = text.substr(0, begin).rfind('\n') + 1;  // 0 behind npos.
    const std::size_t first = text.find_first_not_of(" \t", line);
    if (text[first] != '#') last = begin;
  }
}

}  // namespace

std::optional<Where> where_said(std::string_view text, const std::string& file,
                                std::span<const OwnOption> own, std::string_view option) {
  for (const OwnOption& each : own) {
    if (each.option != option) continue;
    const std::size_t at = last_place(text, each.own);
    if (at == std::string_view::npos) continue;
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const bool is_one_line = text.find('\n') == std::string_view::npos;
    return Where{file, is_one_line ? 0 : static_cast<int>(lines) + 1,
                 std::string(text.substr(at, each.own.size()))};
  }
  return std::nullopt;
}

}  // namespace braid
