#include "braid/trainers/exchange/python_functions.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace braid {
namespace {

bool opens(char c) { return c == '(' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == ']' || c == '}'; }

/// Behind the bracket that closes the one at `at`; the text's end where none does.
std::size_t end_of_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_python_string(text, at);
      continue;
    }
    if (c == '#') {
      at = end_of_python_line(text, at);
      continue;
    }
    ++at;
    if (opens(c)) ++depth;
    if (closes(c) && --depth <= 0) return at;
  }
  return at;
}

/// What the statement defines, if it is "def NAME(…) -> …:".
std::optional<PythonFunction> function_of(std::string_view text, const PythonStatement& statement) {
  const std::string_view whole = text.substr(0, statement.end);
  std::size_t at = statement.begin;
  for (const std::string_view word : {"async ", "def "}) {
    if (whole.substr(at, word.size()) == word) at += word.size();
  }
  if (whole.substr(statement.begin, at - statement.begin).find("def ") == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t bracket = whole.find('(', at);
  if (bracket == std::string_view::npos) return std::nullopt;
  PythonFunction function;
  function.name = trimmed_python(whole.substr(at, bracket - at));
  at = end_of_brackets(whole, bracket);
  function.parameters =
      trimmed_python(whole.substr(bracket + 1, at > bracket + 1 ? at - bracket - 2 : 0));
  std::size_t colon = at;
  while (colon < whole.size() && whole[colon] != ':') {
    colon = opens(whole[colon]) ? end_of_brackets(whole, colon) : colon + 1;
  }
  function.returns = trimmed_python(whole.substr(at, colon - at));
  if (function.returns.starts_with("->")) {
    function.returns = trimmed_python(function.returns.substr(2));
  }
  function.begin = std::min(colon + 1, whole.size());
  function.end = statement.end;
  return function;
}

}  // namespace

bool is_python_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::string_view trimmed_python(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::size_t end_of_python_string(std::string_view text, std::size_t at) {
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

std::size_t end_of_python_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

std::size_t end_of_python_value(std::string_view text, std::size_t at, bool in_brackets) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_python_string(text, at);
      continue;
    }
    if (c == '#' || (c == '\n' && depth == 0 && !in_brackets)) return at;
    if (opens(c)) ++depth;
    if (closes(c) && --depth < 0) return at;
    if (c == ',' && depth == 0) return at;
    ++at;
  }
  return at;
}

bool PythonFunction::needs_no_arguments() const {
  for (std::size_t at = 0; at < parameters.size();) {
    const std::size_t behind = std::max(end_of_python_value(parameters, at, true), at + 1);
    const std::string_view one = trimmed_python(parameters.substr(at, behind - at));
    at = behind;
    if (one.empty() || one == "," || one.front() == '*' || one.front() == '#') continue;
    if (one.find('=') == std::string_view::npos) return false;
  }
  return true;
}

std::vector<PythonStatement> python_statements(std::string_view text) {
  std::vector<PythonStatement> all;
  bool is_edge = true;
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (is_edge && depth <= 0 && !is_blank && c != '#') {
      if (!all.empty()) all.back().end = at;
      all.push_back({at, text.size()});
    }
    is_edge = c == '\n';
    if (c == '"' || c == '\'') {
      at = end_of_python_string(text, at);
    } else if (c == '#') {
      at = end_of_python_line(text, at);
    } else {
      depth += opens(c) ? 1 : closes(c) ? -1 : 0;
      ++at;
    }
  }
  return all;
}

std::vector<PythonImport> python_imports(std::string_view text) {
  std::vector<PythonImport> all;
  for (const PythonStatement& statement : python_statements(text)) {
    std::string_view line = text.substr(statement.begin, statement.end - statement.begin);
    constexpr std::string_view kFrom = "from ", kImport = " import ";
    const std::size_t middle = line.find(kImport);
    if (!line.starts_with(kFrom) || middle == std::string_view::npos) continue;
    const std::string_view module =
        trimmed_python(line.substr(kFrom.size(), middle - kFrom.size()));
    line.remove_prefix(middle + kImport.size());
    for (std::size_t at = 0; at < line.size();) {
      if (line[at] == '#') at = end_of_python_line(line, at);
      const std::size_t begin = at;
      while (at < line.size() && is_python_name_part(line[at])) ++at;
      const std::string_view word = line.substr(begin, at - begin);
      const bool renames = !all.empty() && all.back().name == "as" && all.back().module == module;
      if (renames) all.resize(all.size() - 2);
      if (!word.empty()) all.push_back({word, module});
      if (at == begin) ++at;
    }
  }
  return all;
}

bool calls_python(std::string_view part, std::string_view name) {
  for (std::size_t at = part.find(name); at != std::string_view::npos;
       at = part.find(name, at + 1)) {
    const bool begins = at == 0 || !is_python_name_part(part[at - 1]);
    if (begins && part.substr(at + name.size(), 1) == "(") return true;
  }
  return false;
}

std::string python_call_text(std::string_view text, std::string_view name) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const std::vector<PythonFunction> functions = python_functions(text);
  std::string all;
  for (const PythonStatement& statement : python_statements(text)) {
    const std::string_view part = text.substr(statement.begin, statement.end - statement.begin);
    const bool is_code = !part.starts_with("def ") && !part.starts_with("async def ") &&
                         !part.starts_with("class ") && !part.starts_with("if __name__");
    if (is_code) all += part;
  }
  // What is called comes first, since its caller changes what it gives.
  std::vector<std::string_view> bodies, names = {name};
  std::size_t size = 0;
  constexpr std::size_t kMostCalls = 100;
  for (std::size_t i = 0; i < names.size() && i < kMostCalls && size < kMost; ++i) {
    for (const PythonFunction& each : functions) {
      if (each.name != names[i]) continue;
      const std::string_view body = text.substr(each.begin, each.end - each.begin);
      bodies.push_back(body);
      size += body.size();
      for (const PythonFunction& other : functions) {
        if (calls_python(body, other.name)) names.push_back(other.name);
      }
      break;
    }
  }
  for (auto body = bodies.rbegin(); body != bodies.rend(); ++body) {
    all += "\n";
    all += *body;
  }
  return all;
}

std::vector<PythonFunction> python_functions(std::string_view text) {
  std::vector<PythonFunction> all;
  for (const PythonStatement& statement : python_statements(text)) {
    if (auto function = function_of(text, statement)) all.push_back(*function);
  }
  return all;
}

}  // namespace braid
