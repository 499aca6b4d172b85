#include "braid/base/csv.h"

#include <random>

#include <gtest/gtest.h>

#include "braid/base/error.h"

#include "base/error_text.h"

namespace braid {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, ReadsFieldsWithCommasQuotesAndLineEnds) {
  const CsvTable table = parse_csv("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\n\n\"\",2,3", "t.csv");
  EXPECT_EQ(table.columns, (Fields{"a", "b", "c"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].fields, (Fields{"1", "x, \"y\"\nz", ""}));
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].fields, (Fields{"", "2", "3"}));
  EXPECT_EQ(table.rows[1].line, 5);
  EXPECT_EQ(table.column("b"), 1U);
  EXPECT_EQ(table.column("d"), std::nullopt);
}

TEST(Csv, SkipsAByteOrderMarkAndReadsOneColumn) {
  const CsvTable table = parse_csv("\xEF\xBB\xBFonly\n5\n6\n", "t.csv");
  EXPECT_EQ(table.columns, Fields{"only"});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].fields, Fields{"6"});
}

TEST(Csv, SaysWhereTextIsNoTable) {
  const auto message = [](std::string_view text) {
    try {
      parse_csv(text, "t.csv");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(""), "t.csv: the file is empty; begin it with column names");
  EXPECT_EQ(message("a,,b\n"), "t.csv:1: a column has no name; name every column");
  EXPECT_EQ(message("a,b,a\n"), "t.csv:1: a: there are two such columns; leave one out");
  EXPECT_EQ(message("a,b\n1,2\n1\n"),
            "t.csv:3: 1 fields where the head has 2; put fields that have commas in quotes");
  EXPECT_EQ(message("a,b\n1,\"2\n\n"),
            "t.csv:2: a quoted field that never ends; close it with a quote");
  EXPECT_EQ(message("a,b\n1,2\"3\n"),
            "t.csv:2: a quote inside a field that does not begin with one; put the whole field in "
            "quotes and double the quote");
  EXPECT_EQ(message("a,b\n1,\"2\"3\n"),
            "t.csv:2: text after the quote that ends a field; double a quote that is meant");
  EXPECT_EQ(message("a\n\xFF\n"), "t.csv: the file is not UTF-8 text");
}

TEST(Csv, ReadsBackWhatIsWrittenQuoted) {
  std::mt19937_64 random(7);
  const std::string alphabet = "ab,\"\n1 ";
  for (int round = 0; round < 300; ++round) {
    const std::size_t columns = 1 + random() % 4;
    std::string text;
    for (std::size_t c = 0; c < columns; ++c) text += (c ? ",c" : "c") + std::to_string(c);
    text += '\n';
    std::vector<Fields> rows(random() % 5);
    for (Fields& row : rows) {
      for (std::size_t c = 0; c < columns; ++c) {
        std::string value = "x";
        for (std::size_t i = random() % 6; i > 0; --i)
          value += alphabet[random() % alphabet.size()];
        text += c ? ",\"" : "\"";
        for (const char letter : value) text += letter == '"' ? "\"\"" : std::string(1, letter);
        text += '"';
        row.push_back(value);
      }
      text += '\n';
    }
    const CsvTable table = parse_csv(text, "t.csv");
    ASSERT_EQ(table.rows.size(), rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(table.rows[r].fields, rows[r]);
  }
}

}  // namespace
}  // namespace braid
