#include "braid/base/csv.h"

#include <algorithm>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  /// The next record that is not an empty line; nullopt at the end.
  std::optional<CsvRow> next() {
    while (at_ < text_.size()) {
      CsvRow row = record();
      if (row.fields.size() > 1 || !row.fields.front().empty()) return row;
    }
    return std::nullopt;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& message, const std::string& remedy) const {
    throw Error(Where{file_, line, ""}, message, remedy);
  }

  CsvRow record() {
    CsvRow row;
    row.line = line_;
    do {
      row.fields.push_back(field());
    } while (at_ < text_.size() && text_[at_++] == ',');
    // What stopped the last field was a line end, which is behind us now, or the end of the text.
    return row;
  }

  /// Reads up to the comma or line feed that ends a field, or the end of the text.
  std::string field() {
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') {
      value = quoted_field();
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
        if (text_[at_] == '"') {
          fail(line_, "a quote inside a field that does not begin with one",
               "put the whole field in quotes and double the quote");
        }
        value += text_[at_++];
      }
      if (at_ >= text_.size() || text_[at_] == '\n') {
        if (value.ends_with('\r')) value.pop_back();
      }
    }
    if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    return value;
  }

  std::string quoted_field() {
    const int began = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          if (at_ < text_.size() && text_[at_] == '\r') ++at_;
          if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
            fail(line_, "text after the quote that ends a field", "double a quote that is meant");
          }
          return value;
        }
        ++at_;
      } else if (text_[at_] == '\n') {
        ++line_;
      }
      value += text_[at_];
    }
    fail(began, "a quoted field that never ends", "close it with a quote");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  if (!is_utf8(text)) throw Error(Where{file, 0, ""}, "the file is not UTF-8 text");
  CsvReader reader(text, file);
  CsvTable table;
  table.file = file;
  std::optional<CsvRow> head = reader.next();
  if (!head) throw Error(Where{file, 0, ""}, "the file is empty", "begin it with column names");
  table.columns = std::move(head->fields);
  std::vector<std::string> sorted = table.columns;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().empty()) {
    throw Error(Where{file, head->line, ""}, "a column has no name", "name every column");
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw Error(Where{file, head->line, abbreviated(*twice, 60)}, "there are two such columns",
                "leave one out");
  }
  while (auto row = reader.next()) {
    if (row->fields.size() != table.columns.size()) {
      throw Error(Where{file, row->line, ""},
                  std::to_string(row->fields.size()) + " fields where the head has " +
                      std::to_string(table.columns.size()),
                  "put fields that have commas in quotes");
    }
    table.rows.push_back(std::move(*row));
  }
  return table;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of("\",\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

}  // namespace braid
