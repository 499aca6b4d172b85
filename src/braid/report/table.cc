#include "braid/report/table.h"

#include <algorithm>

namespace braid {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A number with or without its sign, or what stands where there is none.
bool is_number(const std::string& text) {
  if (text.empty() || text == "-" || text == "…") return true;
  const std::size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
  return sign < text.size() && is_digit(text[sign]);
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    widths.resize(std::max(widths.size(), rows[r].size()), 0);
    right.resize(widths.size(), true);
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      widths[c] = std::max(widths[c], width_of(rows[r][c]));
      if (r > 0 && !is_number(rows[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::string padding(widths[c] - width_of(rows[r][c]), ' ');
      line += c > 0 ? "  " : "";
      line += right[c] ? padding + rows[r][c] : rows[r][c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r > 0) continue;
    std::size_t total = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) total += width;
    // Free text behind the last column's title would make the rule wider than most screens.
    if (!right.back()) total -= widths.back() - width_of(rows[r].back());
    for (std::size_t i = 0; i < total; ++i) text += "─";
    text += "\n";
  }
  return text;
}

std::string titled_lines(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = title + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

}  // namespace braid
