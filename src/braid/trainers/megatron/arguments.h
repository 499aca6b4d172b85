#pragma once

#include <string>

#include <fmt/format.h>

namespace braid {

/// Arguments of Megatron-LM's scripts, one a line behind the torchrun line, so that people can
/// comment and edit.
class MegatronArguments {
 public:
  void flag(const std::string& name) { text_ += " \\\n    " + name; }
  template <typename T>
  void value(const std::string& name, const T& value) {
    text_ += fmt::format(" \\\n    {} {}", name, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace braid
