#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/explore/point_result.h"

namespace braid {

/// Results of a space's points in an SQLite database, so that an interrupted sweep goes on where it
/// was. Figures come back bit for bit. Not for use by several threads at once.
class PointStore {
 public:
  /// Opens or creates the database for a space of that text (canonical_text and whatever else
  /// results depend on) with `points` points whose results have these columns. Throws Error when
  /// the file cannot be opened, is no such database, or is of another space.
  PointStore(const std::string& path, const ResultColumns& columns, const std::string& space_text,
             std::size_t points);
  PointStore(const PointStore&) = delete;
  PointStore& operator=(const PointStore&) = delete;
  ~PointStore();

  /// What is there, by number of the point. Throws Error for results that cannot be.
  std::vector<std::optional<PointResult>> load() const;

  /// Adds a result; it is safe on disk after `commit`.
  void add(std::size_t number, const PointResult& result);
  void commit();

 private:
  struct Database;
  std::unique_ptr<Database> database_;
  std::string path_;
  ResultColumns columns_;
  std::size_t points_ = 0;
};

}  // namespace braid
