#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

/// A script and where in it a reader is.
class ShellText {
 public:
  /// `file` is named in errors, and must outlive this.
  ShellText(std::string_view text, const std::string& file)
      : text_(text), file_(file), end_(text.size()) {}

  std::size_t position() const { return at_; }
  std::size_t end() const { return end_; }
  bool is_done() const { return at_ >= end_; }
  char here() const { return text_[at_]; }
  bool is_at(std::string_view token) const { return part(at_, end_).starts_with(token); }
  std::string_view part(std::size_t begin, std::size_t end) const {
    return begin < end && begin < text_.size() ? text_.substr(begin, end - begin)
                                               : std::string_view{};
  }
  void move(std::size_t by) { move_to(at_ + by); }
  void move_to(std::size_t position) { at_ = position < end_ ? position : end_; }

  /// The first of a text at or behind `begin`, or end().
  std::size_t find(std::string_view token, std::size_t begin) const;
  /// Whether no further word of the command is there.
  bool ends_command() const;
  /// Moves over spaces, continued lines and comments; with `lines` over ends of lines, too.
  void skip_blank(bool lines);
  /// Where the bracket is closed that opens at `begin`. Throws Error where it is not.
  std::size_t closing(std::size_t begin, char open, char close) const;
  /// Throws Error that names the line.
  [[noreturn]] void fail(const std::string& message) const;

  /// Reads only up to `end` as long as it lives, and goes back to where it was then.
  class Part {
   public:
    Part(ShellText& text, std::size_t begin, std::size_t end)
        : text_(text), at_(text.at_), end_(text.end_) {
      text.at_ = begin;
      text.end_ = end;
    }
    ~Part() {
      text_.at_ = at_;
      text_.end_ = end_;
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    ShellText& text_;
    std::size_t at_, end_;
  };

 private:
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, end_ = 0;
};

}  // namespace braid
