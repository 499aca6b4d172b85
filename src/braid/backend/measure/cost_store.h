#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "braid/backend/measure/kernel_finding.h"

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

/// What came of measuring kernels, in an SQLite database: their times, and which of them are
/// refused or wrong. Several programs may use one file at once: each finding is safe on disk,
/// whole, when `add` returns. Times come back bit for bit. Throws Error when the file cannot be
/// opened or written, is no such database, or is of another version of braid.
class CostStore {
 public:
  explicit CostStore(const std::string& path);
  CostStore(const CostStore&) = delete;
  CostStore& operator=(const CostStore&) = delete;
  ~CostStore();

  std::optional<KernelFinding> find(const CostKey& key);
  /// Replaces what is there. Of a kernel that broke nothing is kept.
  void add(const CostKey& key, const KernelFinding& finding);
  std::int64_t size();  ///< Times alone.

 private:
  std::optional<KernelFinding> find_failure(const CostKey& key);

  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace braid
