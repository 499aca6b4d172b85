#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A record of a CSV file: as many fields as the head has columns.
struct CsvRow {
  int line = 0;  ///< Where it begins; the head is usually on line 1.
  std::vector<std::string> fields;
};

/// Comma-separated values with a head (RFC 4180): fields with commas, quotes or line ends stand in
/// double quotes, a quote inside is doubled. Lines end in LF or CRLF; empty lines are skipped.
struct CsvTable {
  std::string file;
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  /// Index of a column; nullopt when there is none of that name.
  std::optional<std::size_t> column(std::string_view name) const;
};

/// Throws Error naming `file` and the line: no head, an unnamed or repeated column, a row with too
/// few or too many fields, a quote that is not closed or in the middle of a field, text that is not
/// UTF-8. Linear in the text.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// Text as a field, in quotes where it needs them.
std::string csv_field(const std::string& text);

}  // namespace braid
