#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "braid/backend/measure/measurement.h"

namespace braid {

/// What a kernel's time depends on.
struct CostKey {
  std::string backend, version;  ///< The library and its version.
  std::string pattern;           ///< Name of the backend's pattern, which has its layout in it.
  std::string job;               ///< job_text(): operations, attributes, types and shapes.
  std::int64_t threads = 1;
  std::string machine;  ///< machine_name().

  friend bool operator==(const CostKey&, const CostKey&) = default;
};

/// The processor's model and the number of cores that this program may use: "Intel(R) Xeon(R)
/// Processor, 2 cores".
std::string machine_name();

/// Measured times of kernels in an SQLite database. Several programs may use one file at once: each
/// time is safe on disk, whole, when `add` returns. Times come back bit for bit. Throws Error when
/// the file cannot be opened or written, is no such database, or is of another version of braid.
class CostStore {
 public:
  explicit CostStore(const std::string& path);
  CostStore(const CostStore&) = delete;
  CostStore& operator=(const CostStore&) = delete;
  ~CostStore();

  std::optional<Measurement> find(const CostKey& key);
  /// Replaces what is there.
  void add(const CostKey& key, const Measurement& measurement);
  std::int64_t size();

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace braid
