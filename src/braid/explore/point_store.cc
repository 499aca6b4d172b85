#include "braid/explore/point_store.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sqlite3.h>

#include "braid/base/error.h"

namespace braid {
namespace {

// Of the tables and of what results mean: databases of another number are refused.
constexpr int kVersion = 2;
constexpr int kBusyMs = 2000;

// Columns that results of all spaces have, in the order in which they are read and bound.
constexpr const char* kCommon =
    "number INTEGER PRIMARY KEY, status INTEGER NOT NULL, work INTEGER NOT NULL, time_s REAL NOT "
    "NULL, lower_bound_s REAL NOT NULL, throughput REAL NOT NULL, utilisation REAL NOT NULL, usd "
    "REAL NOT NULL, watts REAL NOT NULL, reason TEXT NOT NULL, form TEXT NOT NULL, assumptions "
    "TEXT NOT NULL";
constexpr int kCommonColumns = 12;

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

void bind_text(sqlite3_stmt* statement, int column, const std::string& text) {
  sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

struct PointStore::Database {
  sqlite3* handle = nullptr;
  sqlite3_stmt* insert = nullptr;
  bool in_transaction = false;
  std::string path;

  explicit Database(std::string where) : path(std::move(where)) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    sqlite3_finalize(insert);
    sqlite3_close(handle);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error({path, 0, ""}, fmt::format("{}: {}", what, sqlite3_errmsg(handle)));
  }

  void run(const char* sql) const {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      fail("cannot use the database");
    }
  }

  /// A statement that ends with its scope.
  struct Statement {
    const Database& database;
    sqlite3_stmt* statement = nullptr;
    Statement(const Database& in, const char* sql) : database(in) {
      if (sqlite3_prepare_v2(in.handle, sql, -1, &statement, nullptr) != SQLITE_OK) {
        in.fail("cannot use the database");
      }
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { sqlite3_finalize(statement); }
    bool step() const {
      const int status = sqlite3_step(statement);
      if (status != SQLITE_ROW && status != SQLITE_DONE) database.fail("cannot read the database");
      return status == SQLITE_ROW;
    }
    std::string text(int column) const {
      const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return bytes == nullptr ? "" : bytes;
    }
  };
};

PointStore::PointStore(const std::string& path, const ResultColumns& columns,
                       const std::string& space_text, std::size_t points)
    : database_(std::make_unique<Database>(path)), path_(path), columns_(columns), points_(points) {
  Database& database = *database_;
  if (sqlite3_open(path.c_str(), &database.handle) != SQLITE_OK) {
    database.fail("cannot open the database");
  }
  sqlite3_busy_timeout(database.handle, kBusyMs);
  bool empty = false;
  {
    const Database::Statement count(database, "SELECT count(*) FROM sqlite_master");
    count.step();
    empty = sqlite3_column_int64(count.statement, 0) == 0;
  }
  if (empty) {
    database.run("BEGIN IMMEDIATE");
    database.run(tables_of(columns).c_str());
    const Database::Statement insert(database, "INSERT INTO space VALUES (?, ?)");
    sqlite3_bind_int(insert.statement, 1, kVersion);
    sqlite3_bind_text64(insert.statement, 2, space_text.data(), space_text.size(), nullptr,
                        SQLITE_UTF8);
    insert.step();
    database.run("COMMIT");
  } else {
    {
      const Database::Statement tables(database,
                                       "SELECT count(*) FROM sqlite_master WHERE name IN "
                                       "('space', 'points')");
      tables.step();
      if (sqlite3_column_int64(tables.statement, 0) != 2) {
        throw Error({path, 0, ""}, "this database is of another program",
                    "give another folder, or remove it");
      }
    }
    const Database::Statement space(database, "SELECT version, text FROM space");
    if (!space.step() || sqlite3_column_int(space.statement, 0) != kVersion ||
        space.text(1) != space_text) {
      throw Error({path, 0, ""}, "this database has results of another space or version of braid",
                  "give another folder, or remove it");
    }
  }
  std::string sql = "INSERT OR REPLACE INTO points VALUES (?";
  for (std::size_t i = 1; i < kCommonColumns + own_columns(columns); ++i) sql += ", ?";
  sql += ")";
  if (sqlite3_prepare_v2(database.handle, sql.c_str(), -1, &database.insert, nullptr) !=
      SQLITE_OK) {
    database.fail("cannot use the database");
  }
}

PointStore::~PointStore() = default;

std::vector<std::optional<PointResult>> PointStore::load() const {
  std::vector<std::optional<PointResult>> results(points_);
  const Database::Statement rows(*database_, "SELECT * FROM points");
  while (rows.step()) {
    const auto integer = [&](int column) { return sqlite3_column_int64(rows.statement, column); };
    const auto real = [&](int column) { return sqlite3_column_double(rows.statement, column); };
    const std::int64_t number = integer(0), status = integer(1);
    PointResult result;
    bool sound = number >= 0 && number < static_cast<std::int64_t>(points_) && status >= 0 &&
                 status <= static_cast<std::int64_t>(Status::budget_exhausted);
    result.work = integer(2);
    int column = 3;
    for (double* figure : {&result.time_s, &result.lower_bound_s, &result.throughput,
                           &result.utilisation, &result.usd, &result.watts}) {
      *figure = real(column++);
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
        result.counts.push_back(integer(column++));
      }
      for (std::size_t i = 0; i < columns_.figures.size() + columns_.parts.size(); ++i) {
        const double figure = real(column++);
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
    database.run("BEGIN IMMEDIATE");
    database.in_transaction = true;
  }
  sqlite3_stmt* const insert = database.insert;
  sqlite3_reset(insert);
  sqlite3_clear_bindings(insert);
  int column = 1;
  sqlite3_bind_int64(insert, column++, static_cast<std::int64_t>(number));
  sqlite3_bind_int64(insert, column++, static_cast<std::int64_t>(result.status));
  sqlite3_bind_int64(insert, column++, result.work);
  for (const double figure : {result.time_s, result.lower_bound_s, result.throughput,
                              result.utilisation, result.usd, result.watts}) {
    sqlite3_bind_double(insert, column++, figure);
  }
  bind_text(insert, column++, result.reason);
  bind_text(insert, column++, result.form);
  bind_text(insert, column++, joined_lines(result.assumptions));
  for (const std::string& word : result.words) bind_text(insert, column++, word);
  for (const std::int64_t count : result.counts) sqlite3_bind_int64(insert, column++, count);
  for (const double figure : result.figures) sqlite3_bind_double(insert, column++, figure);
  for (const double part : result.parts_s) sqlite3_bind_double(insert, column++, part);
  if (sqlite3_step(insert) != SQLITE_DONE) database.fail("cannot write the database");
  sqlite3_reset(insert);
}

void PointStore::commit() {
  if (!database_->in_transaction) return;
  database_->run("COMMIT");
  database_->in_transaction = false;
}

}  // namespace braid
