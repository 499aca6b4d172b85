#include "braid/explore/point_store.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/sqlite/database.h"

namespace braid {
namespace {

// Of the tables and of what results mean: databases of another number are refused.
constexpr int kVersion = 3;

// Columns that results of all spaces have, in the order in which they are read and bound.
constexpr const char* kCommon =
    "number INTEGER PRIMARY KEY, status INTEGER NOT NULL, work INTEGER NOT NULL, time_s REAL NOT "
    "NULL, lower_bound_s REAL NOT NULL, throughput REAL NOT NULL, utilisation REAL NOT NULL, usd "
    "REAL NOT NULL, watts REAL NOT NULL, joules REAL NOT NULL, reason TEXT NOT NULL, form TEXT NOT "
    "NULL, assumptions TEXT NOT NULL";
constexpr int kCommonColumns = 13;

std::size_t own_columns(const ResultColumns& columns) {
  return columns.words.size() + columns.counts.size() + columns.figures.size() +
         columns.parts.size();
}

// Those of the space are null where nothing was found.
std::string tables_of(const ResultColumns& columns) {
  std::string sql = "CREATE TABLE space (version INTEGER NOT NULL, text TEXT NOT NULL);";
  sql += fmt::format("CREATE TABLE points ({}", kCommon);
  for (const std::string& word : columns.words) sql += fmt::format(", word_{} TEXT", word);
  for (const std::string& count : columns.counts) sql += fmt::format(", count_{} INTEGER", count);
  for (const std::string& figure : columns.figures) sql += fmt::format(", figure_{} REAL", figure);
  for (const std::string& part : columns.parts) sql += fmt::format(", part_{}_s REAL", part);
  return sql + ");";
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string insert_of(const ResultColumns& columns) {
  std::string sql = "INSERT OR REPLACE INTO points VALUES (?";
  for (std::size_t i = 1; i < kCommonColumns + own_columns(columns); ++i) sql += ", ?";
  return sql + ")";
}

/// Makes the tables of a new database, or sees that those of an old one are of this space.
void prepare_tables(const SqliteDatabase& database, const ResultColumns& columns,
                    const std::string& space_text) {
  const DatabaseKind kind{"space", "points", "this database is of another program",
                          "give another folder, or remove it"};
  const bool is_known = is_known_database(database, kind, [&] {
    database.run(tables_of(columns));
    SqliteStatement insert(database, "INSERT INTO space VALUES (?, ?)");
    insert.bind(1, std::int64_t{kVersion});
    insert.bind(2, space_text);
    insert.step();
  });
  if (!is_known) return;
  SqliteStatement space(database, "SELECT version, text FROM space");
  if (!space.step() || space.integer(0) != kVersion || space.text(1) != space_text) {
    throw Error({database.path(), 0, ""},
                "this database has results of another space or version of braid",
                "give another folder, or remove it");
  }
}

}  // namespace

struct PointStore::Database {
  SqliteDatabase database;
  std::optional<SqliteStatement> insert;
  bool in_transaction = false;

  explicit Database(const std::string& path) : database(path) {}
};

PointStore::PointStore(const std::string& path, const ResultColumns& columns,
                       const std::string& space_text, std::size_t points)
    : database_(std::make_unique<Database>(path)), path_(path), columns_(columns), points_(points) {
  prepare_tables(database_->database, columns, space_text);
  database_->insert.emplace(database_->database, insert_of(columns));
}

PointStore::~PointStore() = default;

std::vector<std::optional<PointResult>> PointStore::load() const {
  std::vector<std::optional<PointResult>> results(points_);
  SqliteStatement rows(database_->database, "SELECT * FROM points");
  while (rows.step()) {
    const std::int64_t number = rows.integer(0), status = rows.integer(1);
    PointResult result;
    bool sound = number >= 0 && number < static_cast<std::int64_t>(points_) && status >= 0 &&
                 status <= static_cast<std::int64_t>(Status::budget_exhausted);
    result.work = rows.integer(2);
    int column = 3;
    for (double* figure : {&result.time_s, &result.lower_bound_s, &result.throughput,
                           &result.utilisation, &result.usd, &result.watts, &result.joules}) {
      *figure = rows.real(column++);
      sound = sound && std::isfinite(*figure) && *figure >= 0;
    }
    result.reason = rows.text(column++);
    result.form = rows.text(column++);
    result.assumptions = lines_of(rows.text(column++));
    if (sound) result.status = static_cast<Status>(status);
    if (sound && is_found(result)) {
      for (std::size_t i = 0; i < columns_.words.size(); ++i) {
        result.words.push_back(rows.text(column++));
      }
      for (std::size_t i = 0; i < columns_.counts.size(); ++i) {
        result.counts.push_back(rows.integer(column++));
      }
      for (std::size_t i = 0; i < columns_.figures.size() + columns_.parts.size(); ++i) {
        const double figure = rows.real(column++);
        sound = sound && std::isfinite(figure);
        (i < columns_.figures.size() ? result.figures : result.parts_s).push_back(figure);
      }
    }
    if (!sound) {
      throw Error({path_, 0, ""}, fmt::format("the result of point {} cannot be", number),
                  "remove the database");
    }
    results[static_cast<std::size_t>(number)] = std::move(result);
  }
  return results;
}

void PointStore::add(std::size_t number, const PointResult& result) {
  Database& database = *database_;
  if (!database.in_transaction) {
    database.database.run("BEGIN IMMEDIATE");
    database.in_transaction = true;
  }
  SqliteStatement& insert = *database.insert;
  insert.clear();
  int column = 1;
  insert.bind(column++, static_cast<std::int64_t>(number));
  insert.bind(column++, static_cast<std::int64_t>(result.status));
  insert.bind(column++, result.work);
  for (const double figure : {result.time_s, result.lower_bound_s, result.throughput,
                              result.utilisation, result.usd, result.watts, result.joules}) {
    insert.bind(column++, figure);
  }
  insert.bind(column++, result.reason);
  insert.bind(column++, result.form);
  insert.bind(column++, joined_lines(result.assumptions));
  for (const std::string& word : result.words) insert.bind(column++, word);
  for (const std::int64_t count : result.counts) insert.bind(column++, count);
  for (const double figure : result.figures) insert.bind(column++, figure);
  for (const double part : result.parts_s) insert.bind(column++, part);
  insert.step();
  insert.clear();
}

void PointStore::commit() {
  if (!database_->in_transaction) return;
  database_->database.run("COMMIT");
  database_->in_transaction = false;
}

}  // namespace braid
