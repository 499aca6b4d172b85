#include "braid/report/alternatives.h"

namespace braid {
namespace {

constexpr std::size_t kMostPlans = 1000, kMostColumns = 100;

std::vector<std::string> texts_of(const Value& value) {
  if (value.size() > kMostColumns) value.fail("more columns than the table of a plan has");
  std::vector<std::string> texts;
  for (const Value& entry : value.elements()) texts.emplace_back(entry.as_string());
  return texts;
}

}  // namespace

Alternatives alternatives_from_json(const Value& plan) {
  const Value value = plan["alternatives"];
  Alternatives read;
  if (!value.exists()) return read;
  value.expect_only({"titles", "rows", "marks", "why", "proof", "notes"});
  read.titles = texts_of(value["titles"]);
  if (value["rows"].size() > kMostPlans) value["rows"].fail("more than 1000 plans");
  for (const Value& row : value["rows"].elements()) {
    read.rows.push_back(texts_of(row));
    if (read.rows.back().size() != read.titles.size()) {
      row.fail("a row must have a cell for each title", "leave the alternatives out");
    }
  }
  read.why = value["why"].string_or("");
  read.proof = value["proof"].string_or("");
  if (read.rows.empty() && read.why.empty() && read.proof.empty()) {
    value["rows"].fail("no plan is there", "leave the alternatives out");
  }
  if (value["notes"].exists()) read.notes = texts_of(value["notes"]);
  read.marks = value["marks"].string_or("");
  return read;
}

}  // namespace braid
