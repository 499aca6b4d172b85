#include "braid/trainers/exchange/shell_text.h"

#include <algorithm>

#include "braid/base/error.h"

namespace braid {

std::size_t ShellText::find(std::string_view token, std::size_t begin) const {
  return std::min(text_.substr(0, end_).find(token, begin), end_);
}

bool ShellText::ends_command() const {
  if (is_done()) return true;
  if (is_at("&>")) return false;
  return std::string_view("\n;&|").find(here()) != std::string_view::npos;
}

void ShellText::skip_blank(bool lines) {
  while (!is_done()) {
    if (is_at("\\\n")) {
      at_ += 2;
    } else if (is_at("\\\r\n")) {
      at_ += 3;
    } else if (here() == ' ' || here() == '\t' || here() == '\r' || (lines && here() == '\n')) {
      ++at_;
    } else if (here() == '#') {
      at_ = find("\n", at_);
    } else {
      return;
    }
  }
}

std::size_t ShellText::closing(std::size_t begin, char open, char close) const {
  int depth = 0;
  for (std::size_t i = begin; i < end_; ++i) {
    const char c = text_[i];
    // Brackets in quotes are text where a command stands between them.
    if (open == '(' && (c == '\'' || c == '"')) {
      const std::size_t end = find(std::string_view(&c, 1), i + 1);
      if (end < end_) i = end;
      continue;
    }
    if (c == open) ++depth;
    if (c == close && --depth == 0) return i;
  }
  fail("a bracket is not closed");
}

void ShellText::fail(const std::string& message) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
  const auto line = std::count(text_.begin(), end, '\n') + 1;
  throw Error(Where{file_, static_cast<int>(line), ""}, message, "close it");
}

}  // namespace braid
