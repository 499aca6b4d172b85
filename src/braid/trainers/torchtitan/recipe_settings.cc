#include "braid/trainers/torchtitan/recipe_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

#include "braid/base/text.h"

namespace braid {
namespace {

/// Classes whose keyword arguments are read, and assignments to what they make.
struct Section {
  std::string_view type, prefix;
};
constexpr std::array<Section, 3> kSections = {{{"ParallelismConfig", "parallelism."},
                                               {"TrainingConfig", "training."},
                                               {"CompileConfig", "compile."}}};

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// The end of a string that begins at `at`: behind its closing quote, or of the text.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const std::string_view triple = text.substr(at, 3);
  const bool long_form = triple == "\"\"\"" || triple == "'''";
  const std::string_view quote = text.substr(at, long_form ? 3 : 1);
  for (std::size_t i = at + quote.size(); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, quote.size()) == quote) {
      return i + quote.size();
    }
  }
  return text.size();
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

/// The end of an expression: the comma or bracket that closes it, or with no bracket around it the
/// line.
std::size_t end_of_value(std::string_view text, std::size_t at, bool in_brackets) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '#' || (c == '\n' && depth == 0 && !in_brackets)) return at;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth < 0) return at;
    if (c == ',' && depth == 0) return at;
    ++at;
  }
  return at;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

/// "8 * 2_048" multiplied out; nullopt: it is something else.
std::optional<std::int64_t> product_of(std::string_view text) {
  std::int64_t product = 1;
  while (true) {
    const std::size_t star = text.find('*');
    std::string digits(trimmed(text.substr(0, star)));
    std::erase(digits, '_');
    std::int64_t factor = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, factor);
    if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
    if (star == std::string_view::npos) return product;
    text.remove_prefix(star + 1);
  }
}

std::string value_of(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    return std::string(text.substr(1, text.size() - 2));
  }
  if (const auto product = product_of(text)) return std::to_string(*product);
  return std::string(text);
}

std::string recomputation_of(std::string_view policy) {
  policy = trimmed(policy);
  return policy == "None"                   ? "none"
         : contains(policy, "FullAC")       ? "full"
         : contains(policy, "SelectiveAC")  ? "selective"
         : contains(policy, "MemoryBudget") ? "memory_budget"
                                            : std::string(policy);
}

/// The last part of "config.parallelism".
std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

/// Walks a text once and keeps the brackets that are open.
class RecipeWalk {
 public:
  explicit RecipeWalk(std::string_view text) : text_(text) {}

  std::vector<Setting> run() {
    while (at_ < text_.size()) step();
    return std::move(settings_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = end_of_line(text_, at_);
    } else if (c == '"' || c == '\'') {
      at_ = end_of_string(text_, at_);
    } else if (is_name_part(c)) {
      read_name();
    } else {
      if (c == '(' || c == '[' || c == '{') open_.emplace_back();
      if ((c == ')' || c == ']' || c == '}') && !open_.empty()) open_.pop_back();
      ++at_;
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "from" && open_.empty()) return read_import();
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {
      open_.push_back(name);
      ++at_;
      if (last_part(name) == "model_registry") read_flavor();
    } else if (text_.substr(at_, 1) == "=" && text_.substr(at_, 2) != "==") {
      ++at_;
      take(name, begin);
    }
  }

  /// "from torchtitan.models.llama3 import model_registry"
  void read_import() {
    const std::size_t end = end_of_line(text_, at_);
    const std::string_view line = text_.substr(at_, end - at_);
    const std::string_view package = "torchtitan.models.";
    const std::size_t found = line.find(package);
    if (found != std::string_view::npos && contains(line, "model_registry")) {
      const std::string_view rest = line.substr(found + package.size());
      add("model.name", std::string(rest.substr(0, rest.find_first_of(" .\t"))), at_);
    }
    at_ = end;
  }

  void read_flavor() {
    const std::size_t end = end_of_value(text_, at_, true);
    const std::string_view first = trimmed(text_.substr(at_, end - at_));
    if (!first.empty() && (first.front() == '"' || first.front() == '\'')) {
      add("model.flavor", value_of(first), at_);
    }
  }

  /// The name that the TOML has for what is set here; empty: none.
  std::string key_of(std::string_view name) const {
    const std::string_view inside = open_.empty() ? std::string_view{} : last_part(open_.back());
    for (const Section& section : kSections) {
      if (inside == section.type) return std::string(section.prefix) + std::string(name);
      const std::size_t found = name.rfind(section.prefix);
      const bool whole = found == 0 || (found != std::string_view::npos && name[found - 1] == '.');
      if (whole) return std::string(name.substr(found));
    }
    if (last_part(name) == "activation_checkpoint") return "activation_checkpoint.mode";
    if (inside == "model_registry" && name == "flavor") return "model.flavor";
    if (inside == "model_registry" && name == "converters") return "model.converters";
    return "";
  }

  void take(std::string_view name, std::size_t begin) {
    const std::string key = key_of(name);
    if (key.empty()) return;
    const std::size_t end = end_of_value(text_, at_, !open_.empty());
    const std::string_view value = text_.substr(at_, end - at_);
    add(key, key == "activation_checkpoint.mode" ? recomputation_of(value) : value_of(value),
        begin);
  }

  void add(std::string name, std::string value, std::size_t at) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted_ = at;
    if (!value.empty()) settings_.push_back({std::move(name), std::move(value), line_});
  }

  std::string_view text_;
  std::size_t at_ = 0, counted_ = 0;
  int line_ = 1;
  std::vector<std::string_view> open_;  ///< What stands before each open bracket.
  std::vector<Setting> settings_;
};

}  // namespace

std::vector<Setting> torchtitan_recipe_settings(std::string_view text) {
  return RecipeWalk(text).run();
}

}  // namespace braid
