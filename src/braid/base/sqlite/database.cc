#include "braid/base/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "braid/base/error.h"

namespace braid {
namespace {

constexpr int busy_ms = 2000;

}  // namespace

SqliteDatabase::SqliteDatabase(const std::string& path) : path_(path) {
  if (sqlite3_open(path.c_str(), &handle_) != SQLITE_OK) {
    const std::string problem = sqlite3_errmsg(handle_);
    sqlite3_close(handle_);
    throw Error({path, 0, ""}, fmt::format("cannot open the database: {}", problem));
  }
  sqlite3_busy_timeout(handle_, busy_ms);
}

SqliteDatabase::~SqliteDatabase() { sqlite3_close(handle_); }

void SqliteDatabase::fail(const std::string& what) const {
  throw Error({path_, 0, ""}, fmt::format("{}: {}", what, sqlite3_errmsg(handle_)));
}

void SqliteDatabase::run(const std::string& sql) const {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail("cannot use the database");
  }
}

bool SqliteDatabase::is_empty() const {
  SqliteStatement count(*this, "SELECT count(*) FROM sqlite_master");
  count.step();
  return count.integer(0) == 0;
}

bool is_known_database(const SqliteDatabase& database, const DatabaseKind& kind,
                       const std::function<void()>& make) {
  if (database.is_empty()) {
    database.run("BEGIN IMMEDIATE");
    const bool is_new = database.is_empty();
    if (is_new) make();
    database.run("COMMIT");
    if (is_new) return false;
  }
  SqliteStatement tables(database, "SELECT count(*) FROM sqlite_master WHERE name IN (?, ?)");
  tables.bind(1, kind.first);
  tables.bind(2, kind.second);
  tables.step();
  if (tables.integer(0) == 2) return true;
  throw Error({database.path(), 0, ""}, kind.refusal, kind.remedy);
}

SqliteStatement::SqliteStatement(const SqliteDatabase& database, const std::string& sql)
    : database_(&database) {
  if (sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
    database.fail("cannot use the database");
  }
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::bind(int parameter, const std::string& text) {
  sqlite3_bind_text64(statement_, parameter, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
}
void SqliteStatement::bind(int parameter, std::int64_t number) {
  sqlite3_bind_int64(statement_, parameter, number);
}
void SqliteStatement::bind(int parameter, double number) {
  sqlite3_bind_double(statement_, parameter, number);
}

void SqliteStatement::clear() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool SqliteStatement::step() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW || status == SQLITE_DONE) return status == SQLITE_ROW;
  database_->fail(sqlite3_stmt_readonly(statement_) != 0 ? "cannot read the database"
                                                         : "cannot write the database");
}

std::string SqliteStatement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes == nullptr ? "" : bytes;
}

std::int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double SqliteStatement::real(int column) const { return sqlite3_column_double(statement_, column); }

}  // namespace braid
