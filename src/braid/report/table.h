#pragma once

#include <string>
#include <vector>

namespace braid {

/// Rows of cells as aligned text, the first row being the head, underlined. Columns of numbers,
/// with or without sign, unit and gaps (empty, "-" or "…"), are flushed right. Widths count UTF-8
/// characters, not bytes.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

/// A title and, indented below it, the lines; nothing where there are none.
std::string titled_lines(const std::string& title, const std::vector<std::string>& lines);

}  // namespace braid
