#include "braid/trainers/megatron-bridge/hf_model.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "braid/base/text.h"
#include "braid/trainers/exchange/python_functions.h"

namespace braid {
namespace {

bool is_quote(std::string_view text) { return text.starts_with('"') || text.starts_with('\''); }

/// Whether a name begins at `at`, and no comment is around it.
bool is_code_at(std::string_view text, std::size_t at) {
  if (at > 0 && is_python_name_part(text[at - 1])) return false;
  const std::size_t line = text.rfind('\n', at) + 1;  // 0 where there is none.
  return !contains(text.substr(line, at - line), "#");
}

/// The last value that is given to a variable; empty: none is.
std::string_view value_of(std::string_view text, std::string_view name) {
  for (std::size_t at = text.rfind(name); at != std::string_view::npos;
       at = at > 0 ? text.rfind(name, at - 1) : std::string_view::npos) {
    if (!is_code_at(text, at)) continue;
    const std::size_t end = end_of_python_line(text, at);
    std::string_view rest = trimmed_python(text.substr(at + name.size(), end - at - name.size()));
    const std::size_t equals = rest.find('=');
    // Behind the name stands a type, or nothing.
    const bool is_typed = rest.starts_with(':') && equals != std::string_view::npos;
    if ((!rest.starts_with('=') && !is_typed) || rest.substr(equals, 2) == "==") continue;
    rest = text.substr(static_cast<std::size_t>(rest.data() - text.data()) + equals + 1);
    return trimmed_python(rest.substr(0, end_of_python_value(rest, 0, false)));
  }
  return {};
}

std::string last_string_of(std::string_view text) {
  std::string last;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_quote(text.substr(at))) {
      ++at;
      continue;
    }
    const std::size_t end = end_of_python_string(text, at);
    last = text.substr(at + 1, end > at + 2 ? end - at - 2 : 0);
    at = end;
  }
  return last;
}

/// The string that an expression is, as far as `before` says it.
std::string string_of(std::string_view expression, std::string_view before, int depth = 0) {
  constexpr int kMostVariables = 8;
  if (is_quote(expression)) return last_string_of(expression);
  const bool has_usual = contains(expression, ",");
  if (has_usual &&
      (expression.starts_with("os.environ.get(") || expression.starts_with("os.getenv(") ||
       expression.starts_with("environ.get("))) {
    return last_string_of(expression);
  }
  const bool is_name =
      !expression.empty() && std::all_of(expression.begin(), expression.end(), is_python_name_part);
  if (!is_name || depth == kMostVariables) return "";
  return string_of(value_of(before, expression), before, depth + 1);
}

/// The number that a text begins with; 0: none.
std::int64_t number_at(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max<std::int64_t>(0, number);
}

}  // namespace

std::string hf_model_of(std::string_view text) {
  constexpr std::string_view kCall = "from_hf_pretrained(";
  for (std::size_t at = text.rfind(kCall); at != std::string_view::npos;
       at = at > 0 ? text.rfind(kCall, at - 1) : std::string_view::npos) {
    const std::size_t line = text.rfind('\n', at) + 1;
    if (contains(text.substr(line, at - line), "#")) continue;
    const std::size_t begin = at + kCall.size();
    const std::size_t end = end_of_python_value(text, begin, true);
    std::string name =
        string_of(trimmed_python(text.substr(begin, end - begin)), text.substr(0, at));
    if (!name.empty()) return name;
  }
  return "";
}

void read_checked_sizes(std::string_view text, Import& run) {
  constexpr std::string_view kCheck = "assert (cfg.model.num_layers, cfg.model.hidden_size) == (";
  const std::size_t at = text.find(kCheck);
  if (at == std::string_view::npos) return;
  const std::string_view sizes = text.substr(at + kCheck.size());
  const std::size_t comma = sizes.find(", ");
  if (comma == std::string_view::npos) return;
  run.blocks = number_at(sizes);
  run.hidden = number_at(sizes.substr(comma + 2));
}

}  // namespace braid
