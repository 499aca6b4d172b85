#pragma once

#include <optional>
#include <string>

#include "braid/base/csv.h"
#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {

/// The fields of one row of a file of evidence, by column. Throws Error naming file and line where
/// a column is missing or a figure is none.
struct EvidenceRow {
  static constexpr const char* kRemedy = "write it again with braid calibrate RUNS --evidence FILE";
  const CsvTable& table;
  const CsvRow& row;

  const std::string& text(const char* column) const {
    const std::optional<std::size_t> at = table.column(column);
    if (!at) throw Error(Where{table.file, 1, column}, "no such column", kRemedy);
    return row.fields[*at];
  }
  double number(const char* column) const {
    const std::optional<double> value = finite_double(text(column));
    if (!value) {
      throw Error(Where{table.file, row.line, column}, in_quotes(text(column)) + " is no figure",
                  kRemedy);
    }
    return *value;
  }
};

}  // namespace braid
