#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace braid {

/// An SQLite database in a file. Every failure is an Error that names the file. Not for use by
/// several threads at once; several programs may have the same file open, and wait for each other
/// for up to two seconds.
class SqliteDatabase {
 public:
  /// Opens the file, or creates it.
  explicit SqliteDatabase(const std::string& path);
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;
  ~SqliteDatabase();

  const std::string& path() const { return path_; }
  /// Runs statements that return nothing.
  void run(const std::string& sql) const;
  /// Whether there are no tables yet.
  bool is_empty() const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  friend class SqliteStatement;
  std::string path_;
  sqlite3* handle_ = nullptr;
};

/// Two tables by which databases of a kind are known, the first of which says what it is of.
struct DatabaseKind {
  std::string first, second;
  const char *refusal, *remedy;  ///< Of the Error where a database is of another kind.
};

/// Whether the database was there before; a new one gets its tables from `make`, all or none, and
/// from one program alone. Throws Error where it is of another kind.
bool is_known_database(const SqliteDatabase& database, const DatabaseKind& kind,
                       const std::function<void()>& make);

/// A statement that ends with its scope, and before its database.
///
///   SqliteStatement rows(database, "SELECT name FROM points WHERE number = ?");
///   rows.bind(1, 7);
///   while (rows.step()) std::cout << rows.text(0);
class SqliteStatement {
 public:
  SqliteStatement(const SqliteDatabase& database, const std::string& sql);
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;
  ~SqliteStatement();

  // Parameters count from 1, and stay until clear().
  void bind(int parameter, const std::string& text);
  void bind(int parameter, std::int64_t number);
  void bind(int parameter, double number);
  /// Makes it ready to be run again, without parameters.
  void clear();

  /// Whether there is another row.
  bool step();
  // Columns of the row count from 0.
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

 private:
  const SqliteDatabase* database_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace braid
