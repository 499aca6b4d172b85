#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A function of a Python file, outside of classes and other functions. Views are of the text.
struct PythonFunction {
  std::string_view name, parameters, returns;  ///< What stands in brackets, and behind "->".
  std::size_t begin = 0, end = 0;              ///< Of its body in the text.

  /// Whether a call without arguments is possible: every parameter has a default.
  bool needs_no_arguments() const;
};

/// What stands at the left edge of a Python file and what is indented below it.
struct PythonStatement {
  std::size_t begin = 0, end = 0;
};

/// All of them, in their order; comments between them are left out. Cost: linear.
std::vector<PythonStatement> python_statements(std::string_view text);

/// The functions among them.
std::vector<PythonFunction> python_functions(std::string_view text);

/// A name that a file imports, and of which module.
struct PythonImport {
  std::string_view name, module;
};

/// "from MODULE import NAME, NAME as NAME", by the names that the file uses.
std::vector<PythonImport> python_imports(std::string_view text);

/// Whether a part of a file calls what has the name.
bool calls_python(std::string_view part, std::string_view name);

/// What a call of the function `name` carries out, as text: what stands outside of functions and
/// classes, the functions of the file that it calls, and its own body. Cost: linear in what comes
/// out, which is at most 1 MiB.
std::string python_call_text(std::string_view text, std::string_view name);

/// The end of a string that begins at `at`: behind its closing quote, or of the text.
std::size_t end_of_python_string(std::string_view text, std::size_t at);

/// The end of the line that `at` is in: its line break, or the text's end.
std::size_t end_of_python_line(std::string_view text, std::size_t at);

/// The end of an expression: the comma or bracket that closes it, or with no bracket around it the
/// line.
std::size_t end_of_python_value(std::string_view text, std::size_t at, bool in_brackets);

bool is_python_name_part(char c);

/// Without white space around it.
std::string_view trimmed_python(std::string_view text);

}  // namespace braid
