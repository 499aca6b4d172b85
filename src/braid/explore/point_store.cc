#include "braid/explore/point_store.h"

#include <cmath>

#include <fmt/format.h>
#include <sqlite3.h>

#include "braid/base/error.h"

namespace braid {
namespace {

// Of the tables and of what results mean: databases of another number are refused.
constexpr int kVersion = 1;
constexpr int kBusyMs = 2000;

constexpr const char* kTables =
    "CREATE TABLE space (version INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE TABLE points (number INTEGER PRIMARY KEY, status INTEGER NOT NULL, time_s REAL NOT "
    "NULL, lower_bound_s REAL NOT NULL, flops REAL NOT NULL, utilisation REAL NOT NULL, usd REAL "
    "NOT NULL, watts REAL NOT NULL, compute_s REAL NOT NULL, memory_s REAL NOT NULL, network_s "
    "REAL NOT NULL, layer_s REAL NOT NULL, partitions INTEGER NOT NULL, tensor INTEGER NOT NULL, "
    "pipeline INTEGER NOT NULL, data INTEGER NOT NULL, network TEXT NOT NULL, networks INTEGER NOT "
    "NULL);";

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

PointStore::PointStore(const std::string& path, const std::string& space_text, std::size_t points)
    : database_(std::make_unique<Database>(path)), path_(path), points_(points) {
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
    database.run(kTables);
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
  const char* sql =
      "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  if (sqlite3_prepare_v2(database.handle, sql, -1, &database.insert, nullptr) != SQLITE_OK) {
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
    double* const figures[] = {&result.time_s,      &result.lower_bound_s, &result.flops,
                               &result.utilisation, &result.usd,           &result.watts,
                               &result.compute_s,   &result.memory_s,      &result.network_s,
                               &result.layer_s};
    int column = 2;
    bool sound = number >= 0 && number < static_cast<std::int64_t>(points_) && status >= 0 &&
                 status <= static_cast<std::int64_t>(MappingStatus::exhausted);
    for (double* figure : figures) {
      *figure = real(column++);
      sound = sound && std::isfinite(*figure) && *figure >= 0;
    }
    if (!sound) {
      throw Error({path_, 0, ""}, fmt::format("the result of point {} cannot be", number),
                  "remove the database");
    }
    result.status = static_cast<MappingStatus>(status);
    result.partitions = integer(column++);
    result.tensor = integer(column++);
    result.pipeline = integer(column++);
    result.data = integer(column++);
    result.network = rows.text(column++);
    result.networks = integer(column++);
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
  int column = 1;
  sqlite3_bind_int64(insert, column++, static_cast<std::int64_t>(number));
  sqlite3_bind_int64(insert, column++, static_cast<std::int64_t>(result.status));
  for (const double figure :
       {result.time_s, result.lower_bound_s, result.flops, result.utilisation, result.usd,
        result.watts, result.compute_s, result.memory_s, result.network_s, result.layer_s}) {
    sqlite3_bind_double(insert, column++, figure);
  }
  for (const std::int64_t count :
       {result.partitions, result.tensor, result.pipeline, result.data}) {
    sqlite3_bind_int64(insert, column++, count);
  }
  sqlite3_bind_text64(insert, column++, result.network.data(), result.network.size(), nullptr,
                      SQLITE_UTF8);
  sqlite3_bind_int64(insert, column++, result.networks);
  if (sqlite3_step(insert) != SQLITE_DONE) database.fail("cannot write the database");
  sqlite3_reset(insert);
}

void PointStore::commit() {
  if (!database_->in_transaction) return;
  database_->run("COMMIT");
  database_->in_transaction = false;
}

}  // namespace braid
