#include "braid/backend/measure/cost_store.h"

#include <cmath>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/sqlite/database.h"

namespace braid {
namespace {

/// Of the table and of what is measured: databases of another number are refused.
constexpr std::int64_t store_version = 1;

/// Makes the table of a new database, or sees that that of an old one is of this version.
void prepare_costs(const SqliteDatabase& database) {
  const DatabaseKind kind{"cost_store", "costs", "is no database of measured costs",
                          "give another file"};
  const bool is_known = is_known_database(database, kind, [&] {
    database.run(
        "CREATE TABLE cost_store (version INTEGER NOT NULL);"
        "CREATE TABLE costs (backend TEXT, version TEXT, pattern TEXT, job TEXT, threads INTEGER, "
        "machine TEXT, median_s REAL NOT NULL, low_s REAL NOT NULL, high_s REAL NOT NULL, "
        "variance_s2 REAL NOT NULL, samples INTEGER NOT NULL, outliers INTEGER NOT NULL, "
        "runs_per_sample INTEGER NOT NULL, "
        "PRIMARY KEY (backend, version, pattern, job, threads, machine)) WITHOUT ROWID;");
    database.run(fmt::format("INSERT INTO cost_store VALUES ({})", store_version));
  });
  if (!is_known) return;
  SqliteStatement version(database, "SELECT version FROM cost_store");
  if (!version.step() || version.integer(0) != store_version) {
    throw Error({database.path(), 0, ""}, "has costs of another version of braid",
                "give another file, or remove it");
  }
}

constexpr const char* make_failures =
    "CREATE TABLE IF NOT EXISTS failures (backend TEXT, version TEXT, pattern TEXT, job TEXT, "
    "threads INTEGER, machine TEXT, problem TEXT NOT NULL, "
    "PRIMARY KEY (backend, version, pattern, job, threads, machine)) WITHOUT ROWID;";

constexpr const char* select_cost =
    "SELECT median_s, low_s, high_s, variance_s2, samples, outliers, runs_per_sample FROM costs "
    "WHERE backend = ? AND version = ? AND pattern = ? AND job = ? AND threads = ? AND machine = ?";
constexpr const char* insert_cost =
    "INSERT OR REPLACE INTO costs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

// Without a problem where the library refuses the job.
constexpr const char* select_failure =
    "SELECT problem FROM failures "
    "WHERE backend = ? AND version = ? AND pattern = ? AND job = ? AND threads = ? AND machine = ?";
constexpr const char* insert_failure =
    "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)";

/// Binds the key to parameters 1 to 6.
void bind_key(SqliteStatement& statement, const CostKey& key) {
  statement.clear();
  statement.bind(1, key.backend);
  statement.bind(2, key.version);
  statement.bind(3, key.pattern);
  statement.bind(4, key.job);
  statement.bind(5, key.threads);
  statement.bind(6, key.machine);
}

}  // namespace

struct CostStore::Database {
  static const SqliteDatabase& prepared(const SqliteDatabase& database) {
    prepare_costs(database);
    database.run(make_failures);
    return database;
  }

  SqliteDatabase database;
  SqliteStatement find, insert, find_failure, insert_failure;

  explicit Database(const std::string& path)
      : database(path),
        find(prepared(database), select_cost),
        insert(database, insert_cost),
        find_failure(database, select_failure),
        insert_failure(database, braid::insert_failure) {}
};

CostStore::CostStore(const std::string& path) : database_(std::make_unique<Database>(path)) {}
CostStore::~CostStore() = default;

std::optional<KernelFinding> CostStore::find(const CostKey& key) {
  SqliteStatement& row = database_->find;
  bind_key(row, key);
  if (!row.step()) return find_failure(key);
  const Measurement found{.median_s = row.real(0),
                          .low_s = row.real(1),
                          .high_s = row.real(2),
                          .variance_s2 = row.real(3),
                          .samples = row.integer(4),
                          .outliers = row.integer(5),
                          .runs_per_sample = row.integer(6)};
  row.clear();
  for (const double each : {found.median_s, found.low_s, found.high_s, found.variance_s2}) {
    if (!std::isfinite(each) || each < 0) {
      throw Error({database_->database.path(), 0, ""},
                  fmt::format("the cost of {} for {} cannot be", key.backend, key.pattern),
                  "remove the file");
    }
  }
  return KernelFinding{found, "", false};
}

std::optional<KernelFinding> CostStore::find_failure(const CostKey& key) {
  SqliteStatement& row = database_->find_failure;
  bind_key(row, key);
  if (!row.step()) return std::nullopt;
  KernelFinding found{std::nullopt, row.text(0), false};
  row.clear();
  return found;
}

void CostStore::add(const CostKey& key, const KernelFinding& finding) {
  if (finding.broke) return;
  if (!finding.measured) {
    SqliteStatement& failure = database_->insert_failure;
    bind_key(failure, key);
    failure.bind(7, finding.problem);
    failure.step();
    return failure.clear();
  }
  const Measurement& measurement = *finding.measured;
  SqliteStatement& insert = database_->insert;
  bind_key(insert, key);
  insert.bind(7, measurement.median_s);
  insert.bind(8, measurement.low_s);
  insert.bind(9, measurement.high_s);
  insert.bind(10, measurement.variance_s2);
  insert.bind(11, measurement.samples);
  insert.bind(12, measurement.outliers);
  insert.bind(13, measurement.runs_per_sample);
  insert.step();
  insert.clear();
}

std::int64_t CostStore::size() {
  SqliteStatement count(database_->database, "SELECT count(*) FROM costs");
  count.step();
  return count.integer(0);
}

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

}  // namespace braid
